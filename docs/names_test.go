package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// library is the exported surface of the packages that users import.
type library struct {
	// names are the package-level names, as "bucket.Store".
	names map[string]bool
	// members are the types of fields, and "" for methods, as "bucket.Store.Take". The type is qualified.
	members map[string]string
}

// folders are those packages, by name.
var folders = []string{
	".", "bucket", "bucket/buckettest", "bucket/doctor", "bucket/redisclient", "tiers", "tiers/simulate", "policy", "policy/policytest", "policy/redisfeed", "policy/redisswitch", "observe/report", "usage", "usage/redisusage", "usage/usagetest", "throttle", "throttle/redisthrottle", "throttle/throttletest",
	"contrib/postgresfeed", "contrib/mongofeed", "contrib/kafkastream", "contrib/grafana", "gqlratelimitd/access", "gqlratelimitd/audit", "cost", "event", "event/stream", "event/streamtest", "event/redisstream",
	"idempotency", "lua", "edge", "placement", "ratelimitclient", "ratelimittest", "gqlgenplugin",
}

func readLibrary(t *testing.T) *library {
	t.Helper()
	l := &library{names: map[string]bool{}, members: map[string]string{}}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for _, entry := range entries {
			name := entry.Name()
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, folder, name), nil, 0)
			require.NoError(t, err)
			l.read(file)
		}
	}
	require.True(t, l.names["ratelimit.New"])
	return l
}

func (l *library) read(file *ast.File) {
	pkg := file.Name.Name
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				l.names[pkg+"."+d.Name.Name] = true
			} else {
				l.members[qualified(pkg, d.Recv.List[0].Type)+"."+d.Name.Name] = ""
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				l.readSpec(pkg, spec)
			}
		}
	}
}

func (l *library) readSpec(pkg string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			l.names[pkg+"."+name.Name] = true
		}
	case *ast.TypeSpec:
		self := pkg + "." + s.Name.Name
		l.names[self] = true
		switch typ := s.Type.(type) {
		case *ast.StructType:
			l.readFields(pkg, self, typ.Fields)
		case *ast.InterfaceType:
			l.readFields(pkg, self, typ.Methods)
		default:
			// An alias, or a type made of another one, has its members.
			l.members[self+"."] = qualified(pkg, s.Type)
		}
	}
}

func (l *library) readFields(pkg, self string, fields *ast.FieldList) {
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			l.members[self+"."] = qualified(pkg, field.Type)
		}
		for _, name := range field.Names {
			l.members[self+"."+name.Name] = qualified(pkg, field.Type)
		}
	}
}

// qualified returns the name of a type as this package's, without what is around it.
func qualified(pkg string, typ ast.Expr) string {
	switch x := typ.(type) {
	case *ast.StarExpr:
		return qualified(pkg, x.X)
	case *ast.ArrayType:
		return qualified(pkg, x.Elt)
	case *ast.MapType:
		return qualified(pkg, x.Value)
	case *ast.IndexExpr:
		return qualified(pkg, x.X)
	case *ast.SelectorExpr:
		if from, ok := x.X.(*ast.Ident); ok {
			return from.Name + "." + x.Sel.Name
		}
	case *ast.Ident:
		return pkg + "." + x.Name
	}
	return "?"
}

// has says whether a type has the members, each of the type of the one before.
func (l *library) has(self string, members []string) bool {
	for _, member := range members {
		for {
			typ, ok := l.members[self+"."+member]
			if ok {
				self = typ
				break
			}
			if self, ok = l.members[self+"."]; !ok {
				return false
			}
		}
	}
	return true
}

var (
	ofPackage = regexp.MustCompile(`(?:^|[^\w./-])([a-z]+)\.([A-Z]\w*)((?:\.[A-Z]\w*)*)`)
	ofType    = regexp.MustCompile(`^(?:Config\.)?([A-Z]\w*)((?:\.[A-Z]\w*)+)(?:\(.*\))?$`)
)

// TestEveryNameOfGoThatPagesUseIsThere finds what a change of the API leaves behind in pages. A name without its
// package is one of any package, or a field of ratelimit.Config or edge.Config.
func TestEveryNameOfGoThatPagesUseIsThere(t *testing.T) {
	t.Parallel()
	l := readLibrary(t)
	known := map[string]bool{}
	for name := range l.names {
		known[name[:strings.Index(name, ".")]] = true
	}
	checked := 0
	others := []string{"NetworkError.Body()", "CostAnalysis.Core"} // of other languages
	for _, p := range current(t) {
		for _, m := range ofPackage.FindAllStringSubmatch(p.code(), -1) {
			if !known[m[1]] {
				continue
			}
			checked++
			self := m[1] + "." + m[2]
			if !l.names[self] || m[3] != "" && !l.has(self, strings.Split(m[3][1:], ".")) {
				t.Errorf("%s: there is no %s%s", p.path, self, m[3])
			}
		}
		for _, s := range p.spans() {
			if m := ofType.FindStringSubmatch(s); m != nil && !slices.Contains(others, s) {
				checked++
				if !l.somewhere(m[1], strings.Split(m[2][1:], ".")) {
					t.Errorf("%s: there is no %s", p.path, s)
				}
			}
		}
	}
	require.Greater(t, checked, 100)
}

// somewhere says whether a package has the type with these members, or ratelimit.Config or edge.Config such a field.
func (l *library) somewhere(name string, members []string) bool {
	for _, config := range []string{"ratelimit.Config", "edge.Config"} {
		if l.has(config, append([]string{name}, members...)) {
			return true
		}
	}
	for self := range l.names {
		if strings.HasSuffix(self, "."+name) && l.has(self, members) {
			return true
		}
	}
	return false
}
