package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// statementHead is of what a statement is.
type statementHead struct {
	Number uint64 `json:"number"`
	Tenant string `json:"tenant"`
	// From is the first day, and To the one after the last.
	From   string    `json:"from"`
	To     string    `json:"to"`
	Frozen time.Time `json:"frozen"`
	Hash   string    `json:"hash"`
	// Corrects is the number of the statement in whose place it is.
	Corrects uint64 `json:"corrects,omitempty"`
	// New says that it was made by this request.
	New bool `json:"new,omitempty"`
}

// statementLine is what was counted of a unit or a root field.
type statementLine struct {
	Unit      string `json:"unit"`
	Field     string `json:"field,omitempty"`
	Grade     string `json:"grade"`
	Charged   int64  `json:"charged"`
	GivenBack int64  `json:"givenBack"`
	Net       int64  `json:"net"`
	Calls     *int64 `json:"calls,omitempty"`
}

// statementRoutes are those of statements.
func (s *Server) statementRoutes() []route {
	const org, all = "/v1/orgs/{org}/ratelimit/statements", "/v1/ratelimit/statements"
	reads, makes := []access.Action{access.ReadUsage}, []access.Action{access.FreezeUsage}
	return []route{
		{method: http.MethodGet, pattern: org, does: reads, handle: s.statements},
		{method: http.MethodPost, pattern: org, does: makes, handle: s.freeze},
		{method: http.MethodGet, pattern: org + "/{number}", does: reads, handle: s.statement},
		{method: http.MethodGet, pattern: all, does: reads, handle: s.statements},
		{method: http.MethodPost, pattern: all, does: makes, handle: s.freeze},
		{method: http.MethodGet, pattern: "/v1/ratelimit/freezing", does: reads, handle: s.freezing},
	}
}

// statements lists statements, the newest first.
func (s *Server) statements(c *call) error {
	if err := c.known("below", "limit"); err != nil {
		return err
	}
	below, err := c.number("below")
	if err != nil {
		return err
	}
	n, err := c.page()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.Statements(ctx, c.actor, c.PathValue("org"), below, n)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, struct {
		Statements []statementHead `json:"statements"`
	}{statementHeads(found)})
}

// statement serves a statement: as JSON, or as the text that was signed.
func (s *Server) statement(c *call) error {
	if err := c.known("format"); err != nil {
		return err
	}
	number, err := strconv.ParseUint(c.PathValue("number"), 10, 63)
	if err != nil {
		return badRequest("the number of a statement is a whole number")
	}
	format := c.query.Get("format")
	switch {
	case format == "" && strings.Contains(c.Header.Get("Accept"), "text/plain"):
		format = formatText
	case format == "":
		format = formatJSON
	case format != formatText && format != formatJSON:
		return badRequest("the parameter format is json or text")
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.Statement(ctx, c.actor, c.PathValue("org"), number)
	if err != nil {
		return err
	}
	if format == formatText {
		c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		c.send(http.StatusOK, found.Signed)
		return nil
	}
	out := struct {
		statementHead
		Collected time.Time `json:"collected"`
		// Unknown is up to when not everything was collected.
		Unknown     time.Time       `json:"unknown,omitzero"`
		Previous    uint64          `json:"previous,omitempty"`
		Lines       []statementLine `json:"lines"`
		Differences []statementLine `json:"differences,omitempty"`
		// Signed is the text with its signature.
		Signed string `json:"signed"`
	}{
		statementHeadOf(&found.StatementHead), found.Content.Collected, found.Content.Unknown, found.Content.Previous.Number,
		append([]statementLine{}, statementLines(found.Content.Lines)...), statementLines(found.Content.Differences), string(found.Signed),
	}
	return c.write(http.StatusOK, out)
}

// formatText is the text that was signed.
const formatText = "text"

// freeze makes the statements of a period, of a tenant or of all.
func (s *Server) freeze(c *call) error {
	if err := c.known("month", "from", "to", "limit", "after", "incomplete", "reason", "ticket"); err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	in := control.FreezeInput{
		Tenant: c.PathValue("org"), Month: c.query.Get("month"), From: c.query.Get("from"), To: c.query.Get("to"), After: c.query.Get("after"),
	}
	incomplete, err := c.flag("incomplete")
	if err != nil {
		return err
	}
	in.Incomplete = incomplete != nil && *incomplete
	if in.N, err = c.page(); err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	frozen, err := s.cfg.Control.FreezeUsage(ctx, r, in)
	if err != nil {
		return err
	}
	type left struct {
		Tenant  string `json:"tenant"`
		Problem string `json:"problem"`
	}
	out := struct {
		Statements []statementHead `json:"statements"`
		// Left are tenants that have none, and why.
		Left []left `json:"left,omitempty"`
		Next string `json:"next,omitempty"`
	}{Statements: statementHeads(frozen.Statements), Next: frozen.Next}
	for _, l := range frozen.Left {
		out.Left = append(out.Left, left(l))
	}
	return c.write(http.StatusOK, out)
}

func statementHeads(found []control.StatementHead) []statementHead {
	heads := make([]statementHead, len(found))
	for i := range found {
		heads[i] = statementHeadOf(&found[i])
	}
	return heads
}

func statementHeadOf(h *control.StatementHead) statementHead {
	return statementHead{
		Number: h.Number, Tenant: h.Tenant, From: h.From.Format(time.DateOnly), To: h.To.Format(time.DateOnly), Frozen: h.Frozen, Hash: h.Hash.String(),
		Corrects: h.Corrects, New: h.New,
	}
}

func statementLines(found []statement.Line) []statementLine {
	var lines []statementLine
	for i := range found {
		l := &found[i]
		line := statementLine{Unit: l.Unit, Field: l.Field, Grade: l.Grade, Charged: l.Charged, GivenBack: l.GivenBack, Net: l.Net()}
		if l.Field != "" {
			line.Calls = &l.Calls
		}
		lines = append(lines, line)
	}
	return lines
}
