package web

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// usageColumns are those of a table of usage.
var usageColumns = [...]string{"begin", "end", "open", "known", "tenant", "name", "grade"}

// usageRoutes are those of what was counted.
func (s *Server) usageRoutes() []route {
	const org, all = "/v1/orgs/{org}/ratelimit/usage", "/v1/ratelimit/usage"
	return []route{
		{method: http.MethodGet, pattern: org + "/series", long: true, handle: s.usageSeries},
		{method: http.MethodGet, pattern: all + "/series", long: true, handle: s.usageSeries},
	}
}

// usageSeries serves what was counted, of a tenant or of all: as JSON or CSV, all of it or a page.
func (s *Server) usageSeries(c *call) error {
	in, format, err := c.usageInput()
	if err != nil {
		return err
	}
	if c.query.Has("limit") || c.query.Has("after") {
		return s.usagePage(c, in, format)
	}
	// Who may not is told so in JSON, and before anything is looked for.
	if err := access.Authorize(c.actor, access.ReadUsage, in.Tenant); err != nil {
		return err
	}
	contentType, filename := "application/json", ""
	if format == formatCSV {
		contentType, filename = "text/csv; charset=utf-8; header=present", "usage.csv"
	}
	w := newExport(c, contentType, filename)
	out := newUsageWriter(w, format)
	err = s.cfg.Control.ExportUsage(c.Context(), c.actor, in, out.page)
	if err == nil {
		err = out.close()
	}
	return w.end(err)
}

// usagePage serves a page.
func (s *Server) usagePage(c *call, in control.UsageSeriesInput, format string) (err error) {
	if format == formatCSV {
		return badRequest("a page says in JSON where the next one begins: leave limit and after away for CSV, which has everything")
	}
	if in.N, err = c.page(); err != nil {
		return err
	}
	in.After = c.query.Get("after")
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.UsageSeries(ctx, c.actor, in)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, found)
}

// The formats of an export.
const (
	formatJSON = "json"
	formatCSV  = "csv"
)

// usageInput reads which usage is asked for, and in which format.
func (c *call) usageInput() (in control.UsageSeriesInput, format string, err error) {
	if err = c.known("window", "by", "from", "to", "zone", "name", "format", "limit", "after"); err != nil {
		return in, "", err
	}
	in = control.UsageSeriesInput{
		Tenant: c.PathValue("org"), Window: usage.Window(c.query.Get("window")), By: usage.By(c.query.Get("by")), Zone: c.query.Get("zone"),
	}
	if name := c.query.Get("name"); name != "" {
		in.Names = []string{name}
	}
	if in.From, in.To, err = c.between(); err != nil {
		return in, "", err
	}
	switch format = c.query.Get("format"); {
	case format == "" && strings.Contains(c.Header.Get("Accept"), "text/csv"):
		format = formatCSV
	case format == "":
		format = formatJSON
	case format != formatCSV && format != formatJSON:
		return in, "", badRequest("the parameter format is json or csv")
	}
	return in, format, nil
}

// between reads the parameters from and to, each of which may be missing.
func (c *call) between() (from, to time.Time, err error) {
	for name, into := range map[string]*time.Time{"from": &from, "to": &to} {
		text := c.query.Get(name)
		if text == "" {
			continue
		}
		if *into, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return from, to, badRequest("the parameter %s is a time such as 2026-11-23T03:00:00Z", name)
		}
	}
	return from, to, nil
}

// usageWriter writes pages as they come.
type usageWriter struct {
	out    *bufio.Writer
	csv    *csv.Writer
	by     usage.By
	tenant string
	pages  int
	rows   int
	format string
}

// usageBuffer is how many bytes are sent at once.
const usageBuffer = 32 << 10

func newUsageWriter(w io.Writer, format string) *usageWriter {
	out := bufio.NewWriterSize(w, usageBuffer)
	return &usageWriter{out: out, csv: csv.NewWriter(out), format: format}
}

// page writes a page, behind what comes before all of them.
func (u *usageWriter) page(found *usage.Series) error {
	write, begin := u.addJSON, u.beginJSON
	if u.format == formatCSV {
		write, begin = u.addCSV, u.beginCSV
	}
	if u.pages++; u.pages == 1 {
		if err := begin(found); err != nil {
			return err
		}
	}
	for i := range found.Rows {
		if err := write(&found.Rows[i]); err != nil {
			return err
		}
		u.rows++
	}
	return nil
}

// close writes what comes after all pages.
func (u *usageWriter) close() error {
	if u.format == formatJSON {
		if _, err := u.out.WriteString("]}\n"); err != nil {
			return err
		}
	}
	u.csv.Flush()
	if err := u.csv.Error(); err != nil {
		return err
	}
	return u.out.Flush()
}

func (u *usageWriter) beginJSON(found *usage.Series) error {
	head := *found
	head.Next, head.Rows = "", []usage.Row{}
	text, err := json.Marshal(&head)
	if err != nil {
		return err
	}
	// The rows are the last field of the object.
	_, err = u.out.Write(bytes.TrimSuffix(text, []byte("]}")))
	return err
}

func (u *usageWriter) addJSON(r *usage.Row) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if u.rows > 0 {
		if err := u.out.WriteByte(','); err != nil {
			return err
		}
	}
	_, err = u.out.Write(text)
	return err
}

func (u *usageWriter) beginCSV(found *usage.Series) error {
	u.by, u.tenant = found.By, found.Tenant
	return u.csv.Write(append(usageColumns[:len(usageColumns):len(usageColumns)], usage.Columns(u.by)...))
}

func (u *usageWriter) addCSV(r *usage.Row) error {
	cells := []string{
		r.Begin.Format(time.RFC3339), r.End.Format(time.RFC3339), strconv.FormatBool(r.Open), string(r.Known), cell(cmp.Or(r.Tenant, u.tenant)), cell(r.Name), string(r.Grade),
	}
	for _, n := range r.Numbers(u.by) {
		text := ""
		if *n != nil {
			text = strconv.FormatInt(**n, 10)
		}
		cells = append(cells, text)
	}
	return u.csv.Write(cells)
}

// cell is a text of a table. A spreadsheet would compute one that begins as a formula does, and what is in names clients have written. Where the comma is for decimals
// a cell ends with a semicolon, also between quotes that are not at its beginning.
func cell(text string) string {
	var b strings.Builder
	begins := true
	for _, r := range text {
		if begins && strings.ContainsRune("=+-@\t\r\n\uFF0B\uFF0D\uFF1D\uFF20", r) {
			b.WriteByte('\'')
		}
		begins = r == ';' || begins && r == ' '
		b.WriteRune(r)
	}
	return b.String()
}
