package web

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// usageHead is what is said once of usage. Its rows follow.
type usageHead struct {
	Tenant string `json:"tenant,omitempty"`
	Window string `json:"window"`
	By     string `json:"by"`
	Zone   string `json:"zone"`
	// From is when the first period began, and To when the last one ends.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Since is when counts were collected for the first time, and Collected up to when they have come. Both are missing where they never were.
	Since     time.Time `json:"since,omitzero"`
	Collected time.Time `json:"collected,omitzero"`
	// Kept is from when on there are counts by this window.
	Kept time.Time `json:"kept"`
	// Counts is what the policy of now has counted in the step that charges.
	Counts string `json:"counts,omitempty"`
	// Next is the parameter after of the next page. It is empty at the end.
	Next string `json:"next,omitempty"`
}

// usageRow is what a name has in a period. Numbers that nobody knows, or that are not of what is asked for, are missing.
type usageRow struct {
	Begin       time.Time `json:"begin"`
	End         time.Time `json:"end"`
	Open        bool      `json:"open"`
	Known       string    `json:"known"`
	Tenant      string    `json:"tenant,omitempty"`
	Name        string    `json:"name"`
	Grade       string    `json:"grade"`
	Charged     *int64    `json:"charged,omitempty"`
	GivenBack   *int64    `json:"givenBack,omitempty"`
	Net         *int64    `json:"net,omitempty"`
	Calls       *int64    `json:"calls,omitempty"`
	Admitted    *int64    `json:"admitted,omitempty"`
	Refused     *int64    `json:"refused,omitempty"`
	WouldRefuse *int64    `json:"wouldRefuse,omitempty"`
	Points      *int64    `json:"points,omitempty"`
}

// usageColumns are those of a table of usage.
var usageColumns = [...]string{"begin", "end", "open", "known", "tenant", "name", "grade"}

// usageNumbers are the columns of numbers, and what they are.
func usageNumbers(by control.UsageBy, r *control.UsageRow) (names []string, numbers []int64) {
	if by.Charged() {
		return []string{"charged", "given_back", "net", "calls"}, []int64{r.Charged, r.GivenBack, r.Net(), r.Calls}
	}
	return []string{"admitted", "refused", "would_refuse", "points"}, []int64{r.Admitted, r.Refused, r.WouldRefuse, r.Points}
}

// usageRoutes are those of what was counted.
func (s *Server) usageRoutes() []route {
	const org, all = "/v1/orgs/{org}/ratelimit/usage", "/v1/ratelimit/usage"
	does := []access.Action{access.ReadUsage}
	return []route{
		{method: http.MethodGet, pattern: org + "/series", does: does, handle: s.usageSeries},
		{method: http.MethodGet, pattern: all + "/series", does: does, handle: s.usageSeries},
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
	out := newUsageWriter(w, &in, format)
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
	out := struct {
		usageHead
		Rows []usageRow `json:"rows"`
	}{headOf(&in, found), []usageRow{}}
	out.Next = found.Next
	for i := range found.Rows {
		out.Rows = append(out.Rows, rowOf(&in, &found.Rows[i]))
	}
	return c.write(http.StatusOK, out)
}

// The formats of an export.
const (
	formatJSON = "json"
	formatCSV  = "csv"
)

// usageInput reads which usage is asked for, and in which format.
func (c *call) usageInput() (in control.UsageSeriesInput, format string, err error) {
	if err = c.known("window", "by", "from", "to", "zone", "name", "top", "format", "limit", "after"); err != nil {
		return in, "", err
	}
	in = control.UsageSeriesInput{
		Tenant: c.PathValue("org"), Window: control.UsageWindow(c.query.Get("window")), By: control.UsageBy(c.query.Get("by")), Zone: c.query.Get("zone"),
	}
	if name := c.query.Get("name"); name != "" {
		in.Names = []string{name}
	}
	if in.From, in.To, err = c.between(); err != nil {
		return in, "", err
	}
	if in.Top, err = c.small("top"); err != nil {
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

// small is a parameter that counts few things, 0 if it is not there. What is far too much is still too much.
func (c *call) small(name string) (int, error) {
	n, err := c.number(name)
	return int(min(n, 1<<30)), err
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

func headOf(in *control.UsageSeriesInput, found *control.UsageSeries) usageHead {
	head := usageHead{
		Tenant: in.Tenant, Window: string(in.Window), By: string(in.By), Zone: in.Zone, From: found.From, To: found.To, Since: found.Since,
		Collected: found.Collected, Kept: found.Kept, Counts: found.Counts,
	}
	for _, d := range [...]struct {
		text  *string
		usual string
	}{{&head.Window, string(control.UsageHour)}, {&head.By, string(control.UsageByTenant)}, {&head.Zone, "UTC"}} {
		if *d.text == "" {
			*d.text = d.usual
		}
	}
	return head
}

func rowOf(in *control.UsageSeriesInput, r *control.UsageRow) usageRow {
	out := usageRow{Begin: r.Begin, End: r.End, Open: r.Open, Known: string(r.Known), Name: r.Name, Grade: r.Grade.String()}
	if in.Tenant == "" {
		out.Tenant = r.Tenant
	}
	if r.Known == control.KnownNone {
		return out
	}
	_, numbers := usageNumbers(in.By, r)
	into := [...]**int64{&out.Admitted, &out.Refused, &out.WouldRefuse, &out.Points}
	if in.By.Charged() {
		into = [...]**int64{&out.Charged, &out.GivenBack, &out.Net, &out.Calls}
	}
	for i := range numbers {
		*into[i] = &numbers[i]
	}
	return out
}

// usageWriter writes pages as they come.
type usageWriter struct {
	in     *control.UsageSeriesInput
	out    *bufio.Writer
	csv    *csv.Writer
	pages  int
	rows   int
	format string
}

// usageBuffer is how many bytes are sent at once.
const usageBuffer = 32 << 10

func newUsageWriter(w io.Writer, in *control.UsageSeriesInput, format string) *usageWriter {
	out := bufio.NewWriterSize(w, usageBuffer)
	return &usageWriter{in: in, out: out, csv: csv.NewWriter(out), format: format}
}

// page writes a page, behind what comes before all of them.
func (u *usageWriter) page(found *control.UsageSeries) error {
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

func (u *usageWriter) beginJSON(found *control.UsageSeries) error {
	text, err := json.Marshal(headOf(u.in, found))
	if err != nil {
		return err
	}
	// The rows are the last field of the object.
	_, err = u.out.Write(append(text[:len(text)-1], `,"rows":[`...))
	return err
}

func (u *usageWriter) addJSON(r *control.UsageRow) error {
	text, err := json.Marshal(rowOf(u.in, r))
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

func (u *usageWriter) beginCSV(*control.UsageSeries) error {
	names, _ := usageNumbers(u.in.By, &control.UsageRow{})
	return u.csv.Write(append(usageColumns[:len(usageColumns):len(usageColumns)], names...))
}

func (u *usageWriter) addCSV(r *control.UsageRow) error {
	cells := []string{
		r.Begin.Format(time.RFC3339), r.End.Format(time.RFC3339), strconv.FormatBool(r.Open), string(r.Known), cell(r.Tenant), cell(r.Name), r.Grade.String(),
	}
	_, numbers := usageNumbers(u.in.By, r)
	for _, n := range numbers {
		text := ""
		if r.Known != control.KnownNone {
			text = strconv.FormatInt(n, 10)
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
