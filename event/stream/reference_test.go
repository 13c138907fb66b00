package stream_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/streams.md")

const (
	referencePage = "../../docs/reference/streams.md"
	tablesBegin   = "<!-- Written by go test ./event/stream -update from the comments of package event. -->\n"
	tablesEnd     = "<!-- The end of what it writes. -->\n"
)

// carried are the types of events that leave, each with one that has something in every field.
var carried = []event.Event{
	event.Decided{},
	event.WouldRefuse{},
	event.RefusedRepeatedly{},
	event.CandidateDiffers{},
	event.RefusedAtDoor{},
	event.ThresholdCrossed{},
	event.LimitReached{},
	event.PolicyApplied{},
	event.PolicyRefused{},
	event.PolicyState{},
	event.ModeSwitched{},
}

// fill puts something into every field of a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	default:
		panic(v.Kind())
	}
}

// row is a field of an object of JSON.
type row struct{ name, typ, text string }

// tables are those of the page, by the name of the type in Go, in the order in which they are first needed.
type tables struct {
	comments map[string]string
	order    []string
	rows     map[string][]row
}

// add adds the table of a type, and those of the types in it.
func (s *tables) add(typ reflect.Type) {
	if s.rows[typ.Name()] != nil {
		return
	}
	s.order = append(s.order, typ.Name())
	s.rows[typ.Name()] = []row{}
	s.rows[typ.Name()] = s.fields(typ)
}

func (s *tables) fields(typ reflect.Type) (rows []row) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			rows = append(rows, s.fields(field.Type)...)
			continue
		}
		text := s.comments[typ.Name()+"."+field.Name]
		if strings.HasPrefix(options, "omit") {
			tag += "?"
		}
		rows = append(rows, row{tag, s.word(field.Type), text})
	}
	return rows
}

// word is what a type is called in JSON.
func (s *tables) word(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return "time"
	case typ == reflect.TypeFor[time.Duration]():
		return "integer, ns"
	case typ.Kind() == reflect.Slice:
		return "array of " + s.word(typ.Elem())
	case typ.Kind() == reflect.Pointer:
		return s.word(typ.Elem())
	case typ.Kind() == reflect.Struct:
		s.add(typ)
		return fmt.Sprintf("[%s](#%s)", typ.Name(), strings.ToLower(typ.Name()))
	case typ.Kind() == reflect.String:
		return "string"
	case typ.Kind() == reflect.Bool:
		return "boolean"
	case typ.Kind() == reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}

// links takes the marks of links out of a comment.
var links = strings.NewReplacer("[", "", "]", "", "|", "\\|")

// comments are those of the fields of package event, by type and field. A field without one shares that of the field before it.
func comments(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				text := ""
				for _, field := range s.Fields.List {
					if field.Doc != nil {
						text = links.Replace(strings.Join(strings.Fields(field.Doc.Text()), " "))
					}
					for _, name := range field.Names {
						found[spec.Name.Name+"."+name.Name] = text
					}
				}
			}
			return false
		})
	}
	return found
}

// typesOf are the types of the envelopes of an event.
func typesOf(t *testing.T, typ reflect.Type) (names []string) {
	t.Helper()
	full := reflect.New(typ).Elem()
	fill(full)
	events := []event.Event{full.Interface().(event.Event)}
	if d, ok := events[0].(event.Decided); ok {
		d.RefusalID = ""
		events = append(events, d)
	}
	for _, e := range sent(t, stream.Config{}, events...) {
		names = append(names, "`"+e.Type+"`")
	}
	require.NotEmpty(t, names, typ.Name())
	return names
}

// merged are the rows with one for all fields that share a comment.
func merged(rows []row) (all []row) {
	for _, r := range rows {
		name := "`" + r.name + "`"
		if n := len(all) - 1; n >= 0 && all[n].text == r.text {
			all[n].name += ", " + name
			if !strings.HasSuffix(all[n].typ, r.typ) {
				all[n].typ += "; " + r.typ
			}
			continue
		}
		all = append(all, row{name, r.typ, r.text})
	}
	return all
}

func render(t *testing.T) string {
	t.Helper()
	s := &tables{comments: comments(t), rows: map[string][]row{}}
	types := map[string][]string{}
	for _, e := range carried {
		typ := reflect.TypeOf(e)
		types[typ.Name()] = typesOf(t, typ)
		s.add(typ)
	}
	var b strings.Builder
	b.WriteString(tablesBegin)
	for _, name := range s.order {
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if types[name] != nil {
			fmt.Fprintf(&b, "The data of %s.\n\n", strings.Join(types[name], " and "))
		}
		b.WriteString("| field | JSON | what |\n|---|---|---|\n")
		for _, r := range merged(s.rows[name]) {
			require.NotEmpty(t, r.text, name+"."+r.name)
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, r.typ, r.text)
		}
	}
	b.WriteString("\n" + tablesEnd)
	return b.String()
}

// TestThePageOfStreamsHasEveryFieldOfEveryTypeOfEvent compares the page with what the types and their comments say.
func TestThePageOfStreamsHasEveryFieldOfEveryTypeOfEvent(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), tablesBegin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, tablesEnd)
	require.True(t, found)
	want := before + render(t) + after
	if *update {
		require.NoError(t, os.WriteFile(referencePage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "go test ./event/stream -update writes it; a field that is gone or has another type needs a type v2")
}

// TestEveryFieldThatLeavesIsOnThePage makes each event and looks for the fields of its data in the table, so that what a type writes as JSON by
// other means is found as well.
func TestEveryFieldThatLeavesIsOnThePage(t *testing.T) {
	t.Parallel()
	s := &tables{rows: map[string][]row{}, comments: map[string]string{}}
	for _, e := range carried {
		full := reflect.New(reflect.TypeOf(e)).Elem()
		fill(full)
		s.add(full.Type())
		envelope := sent(t, stream.Config{}, full.Interface().(event.Event))[0]
		var data map[string]any
		require.NoError(t, json.Unmarshal(envelope.Data, &data))
		s.require(t, full.Type().Name(), data)
	}
}

// require fails if an object has other fields than its table, or of another type.
func (s *tables) require(t *testing.T, name string, data map[string]any) {
	t.Helper()
	var want, got []string
	for _, r := range s.rows[name] {
		field := strings.TrimSuffix(r.name, "?")
		want = append(want, field)
		value := data[field]
		if list, ok := value.([]any); ok {
			require.True(t, strings.HasPrefix(r.typ, "array of "), r)
			value = list[0]
		}
		typ := strings.TrimPrefix(r.typ, "array of ")
		switch value := value.(type) {
		case string:
			require.Contains(t, []string{"string", "time"}, typ)
		case float64:
			require.Contains(t, []string{"integer", "integer, ns", "number"}, typ)
		case bool:
			require.Equal(t, "boolean", typ)
		case map[string]any:
			object, _, _ := strings.Cut(strings.TrimPrefix(typ, "["), "]")
			s.require(t, object, value)
		default:
			require.Fail(t, "there is no "+name+"."+field)
		}
	}
	for field := range data {
		got = append(got, field)
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got, name)
}
