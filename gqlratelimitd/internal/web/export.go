package web

import (
	"net/http"
	"time"
)

// exportPatience is how long a client may take for each piece of an export, of some kilobytes.
const exportPatience = 30 * time.Second

// exportWriter answers with an export, however large, while its client reads it.
type exportWriter struct {
	c        *call
	deadline *http.ResponseController
	// contentType is what it is, and filename under which name a browser keeps it. Empty lets it be shown.
	contentType, filename string
	begun                 bool
}

func newExport(c *call, contentType, filename string) *exportWriter {
	return &exportWriter{c: c, deadline: http.NewResponseController(c.w), contentType: contentType, filename: filename}
}

// end ends an export that has perhaps failed.
func (w *exportWriter) end(err error) error {
	if err != nil && w.begun {
		// Half an export must not look like a whole one.
		panic(http.ErrAbortHandler)
	}
	return err
}

// Write implements io.Writer.
func (w *exportWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		header := w.c.w.Header()
		header.Set("Content-Type", w.contentType)
		if w.filename != "" {
			header.Set("Content-Disposition", `attachment; filename="`+w.filename+`"`)
		}
		w.c.status = http.StatusOK
		w.c.w.WriteHeader(http.StatusOK)
	}
	// What cannot be given more time has a deadline of its own.
	_ = w.deadline.SetWriteDeadline(time.Now().Add(exportPatience))
	return w.c.w.Write(p)
}
