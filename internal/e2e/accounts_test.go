package e2e_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const accountSchema = `
	scalar JSON
	input Cred { email: String, n: Int, f: Float, id: ID, b: Boolean, d: Int = 7, l: [String] }
	type Query { me: Int }
	type Mutation { login(email: String, n: Int, f: Float, id: ID, b: Boolean, c: Cred, j: JSON): Int }`

// accountTypes are the arguments by which accounts are told apart.
var accountTypes = map[string]string{
	"email": "String", "n": "Int", "f": "Float", "id": "ID", "b": "Boolean", "c": "Cred", "j": "JSON",
}

// accounts tells the accounts of log-ins apart by one argument.
type accounts struct {
	t         require.TestingT
	by        string
	schema    *ast.Schema
	estimator *cost.Estimator
	snapshot  *tiers.Snapshot
}

func newAccounts(t require.TestingT, by string, maxValues int) *accounts {
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: accountSchema})
	require.NoError(t, err)
	estimator, err := cost.New(schema, cost.Config{MaxValues: maxValues})
	require.NoError(t, err)
	policy, err := tiers.Parse([]byte(`
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 1000, per: minute}}
    operations:
      Mutation.login: {limits: {account: {capacity: 1, per: hour, unit: requests, by: ` + by + `, across: true}}}
`))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return &accounts{t: t, by: by, schema: schema, estimator: estimator, snapshot: snapshot}
}

// of returns the account of a request, what is refused instead if it has none, and its variables as gqlgen has them. Those are
// nil if gqlgen refuses the request.
func (a *accounts) of(query, variables string) (account, refused string, coerced map[string]any) {
	doc, errs := gqlparser.LoadQueryWithRules(a.schema, query, nil)
	require.Empty(a.t, errs, query)
	var given map[string]any
	decoder := json.NewDecoder(strings.NewReader(variables))
	decoder.UseNumber()
	require.NoError(a.t, decoder.Decode(&given), variables)
	coerced, err := validator.VariableValues(a.schema, doc.Operations[0], given)
	if err != nil {
		return "", "", nil
	}
	plan, err := a.estimator.Plan(doc, doc.Operations[0])
	require.NoError(a.t, err)
	calls := plan.Calls(coerced)
	rules := a.snapshot.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Mutation.login"}, Calls: &calls})
	if rules.TooMany != nil {
		return "", rules.TooMany.Most, coerced
	}
	require.Len(a.t, rules.Across, 1)
	return rules.Across[0].Owner.Part, "", coerced
}

// given is the account of a request whose argument is a variable with this JSON.
func (a *accounts) given(value string) (account, refused string, coerced map[string]any) {
	query := fmt.Sprintf("mutation ($x: %s) { login(%s: $x) }", accountTypes[a.by], a.by)
	return a.of(query, `{"x": `+value+`}`)
}

// literal is the account of a request whose argument stands in the document.
func (a *accounts) literal(value string) string {
	account, _, _ := a.of(fmt.Sprintf("mutation { login(%s: %s) }", a.by, value), "{}")
	return account
}

func zeros(n int) string { return strings.Repeat("0", n) }

// Each spelling of one number was an account, so that an attacker had as many attempts as a number has spellings.
func TestTheSpellingsOfANumberAreOneAccount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by, first string
		spell     func(k int) string
	}{
		{"c", `{"email": "bob", "f": 0.5}`, func(k int) string { return `{"email": "bob", "f": "0.5` + zeros(k) + `"}` }},
		{"c", `{"email": "bob", "f": 5}`, func(k int) string { return fmt.Sprintf(`{"email": "bob", "f": 5%s.%se-%d}`, zeros(k), zeros(1100), k) }},
		{"c", `{"email": "bob", "n": 5}`, func(k int) string { return `{"email": "bob", "n": "+` + zeros(100*k) + `5"}` }},
		{"c.f", `{"f": 0.5}`, func(k int) string { return `{"f": ".5` + zeros(100*k) + `"}` }},
		{"f", `5`, func(k int) string { return `"5.` + zeros(64+k) + `"` }},
		{"f", `5`, func(k int) string { return fmt.Sprintf(`5%s.%se-%d`, zeros(k), zeros(1100), k) }},
		{"n", `5`, func(k int) string { return `"` + zeros(100*k) + `5"` }},
		{"j", `5`, func(k int) string { return fmt.Sprintf(`5%s.%se-%d`, zeros(k), zeros(1100), k) }},
		{"j", `1e20`, func(k int) string { return fmt.Sprintf(`1%se%d`, zeros(k), 20-k) }},
	} {
		by, _, _ := strings.Cut(c.by, ".")
		a := newAccounts(t, c.by, 0)
		a.by = by
		want, _, _ := a.given(c.first)
		for k := range 60 {
			account, refused, coerced := a.given(c.spell(k))
			require.NotNil(t, coerced, "gqlgen reads %s", c.spell(k))
			require.Equal(t, want, account, "%s as %s: %s", c.spell(k), c.by, refused)
		}
	}
}

func TestTheSpellingsOfALiteralAreOneAccount(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{"f": `5`, "c": `{f: 5}`} {
		a := newAccounts(t, by, 0)
		for k := range 60 {
			spelled := fmt.Sprintf(`5%s.%se-%d`, zeros(k), zeros(1100), k)
			require.Equal(t, a.literal(want), a.literal(strings.Replace(want, "5", spelled, 1)), spelled)
		}
	}
}

func TestAnObjectIsTheAccountThatItsResolverIsGiven(t *testing.T) {
	t.Parallel()
	a := newAccounts(t, "c", 0)
	want := a.literal(`{email: "2.0", l: ["x"]}`)
	for _, same := range []string{
		`{"email": 2.0, "l": "x"}`, `{"email": "2.0", "l": ["x"], "d": "07"}`, `{"email": "2.0", "l": ["x"], "n": null, "__typename": "any"}`,
	} {
		account, _, _ := a.given(same)
		require.Equal(t, want, account, same)
	}
	for _, other := range []string{`{"email": 2, "l": "x"}`, `{"email": "2.0", "l": ["x", "y"]}`, `{"email": "2.0", "l": ["x"], "d": 8}`} {
		account, _, _ := a.given(other)
		require.NotEqual(t, want, account, other)
	}
}

func TestANumberThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	for by, value := range map[string]string{"f": `"5.%s"`, "n": `"%s5"`, "c": `{"f": "5.%s"}`} {
		a := newAccounts(t, by, 1000)
		account, refused, _ := a.given(fmt.Sprintf(value, zeros(60_000)))
		require.NotEmpty(t, account, by)
		require.Empty(t, refused, by)
		account, refused, _ = a.given(fmt.Sprintf(value, zeros(64_000)))
		require.Empty(t, account, by)
		require.Equal(t, "the server reads", refused, by)
	}
	_, refused, _ := newAccounts(t, "j", 0).given("5." + zeros(300_000))
	require.Equal(t, "256 KiB of values, as far as they are read and folded,", refused)
}

// readers are the unmarshallers of gqlgen.
var readers = map[string]func(value any) (any, error){
	"String":  func(value any) (any, error) { return graphql.UnmarshalString(value) },
	"ID":      func(value any) (any, error) { return graphql.UnmarshalID(value) },
	"Int":     func(value any) (any, error) { return graphql.UnmarshalInt(value) },
	"Float":   func(value any) (any, error) { return graphql.UnmarshalFloat(value) },
	"Boolean": func(value any) (any, error) { return graphql.UnmarshalBoolean(value) },
}

var wholeText = regexp.MustCompile(`^([+-]?)0*([0-9]+)$`)

// folded is what the documentation says of texts without capitals, blanks and characters of other alphabets: the spelling of a
// whole number makes no other value.
func folded(value any) any {
	text, isText := value.(string)
	parts := wholeText.FindStringSubmatch(text)
	switch {
	case !isText || parts == nil:
		return value
	case parts[2] == "0":
		return "0"
	default:
		return strings.TrimPrefix(parts[1], "+") + parts[2]
	}
}

// spellings draws two spellings in JSON, of one number as a rule.
func spellings(t *rapid.T) (one, other string) {
	digits := rapid.IntRange(0, 12)
	texts := rapid.SampledFrom([]string{"true", "a", "", "inf", "0x1p1", "1e20", "100000000000000000001", "0.1", "0.10000000000000000555"})
	spell := func(n int) string {
		if rapid.IntRange(0, 7).Draw(t, "odd") == 0 {
			n = digits.Draw(t, "another")
		}
		text := strconv.Itoa(n)
		switch rapid.IntRange(0, 5).Draw(t, "notation") {
		case 0:
			text = rapid.SampledFrom([]string{"+", "", "-"}).Draw(t, "sign") + zeros(rapid.IntRange(0, 80).Draw(t, "before")) + text
		case 1:
			text += "." + zeros(rapid.IntRange(0, 80).Draw(t, "behind"))
		case 2:
			text = fmt.Sprintf("%s%se-%d", text, zeros(n), n)
		case 3:
			text = texts.Draw(t, "text")
		}
		if json.Valid([]byte(text)) && rapid.Bool().Draw(t, "plain") {
			return text
		}
		return `"` + text + `"`
	}
	n := digits.Draw(t, "number")
	return spell(n), spell(n)
}

// Two values that gqlgen reads as one have one account, and two that it reads as two have two but for what is folded.
func TestAccountsAreWhatUnmarshallersRead(t *testing.T) {
	t.Parallel()
	byArgument := make(map[string]*accounts)
	for by := range accountTypes {
		byArgument[by] = newAccounts(t, by, 0)
	}
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom([]string{"email", "id", "n", "f", "b"}).Draw(t, "argument")
		one, other := spellings(t)
		read := func(given string) (account, within string, read any) {
			account, _, coerced := byArgument[by].given(given)
			if coerced == nil {
				t.SkipNow()
			}
			within, _, inObject := byArgument["c"].given(`{"` + by + `": ` + given + `}`)
			require.NotNil(t, inObject)
			reader := readers[accountTypes[by]]
			read, err := reader(coerced["x"])
			require.NoError(t, err)
			again, err := reader(inObject["x"].(map[string]any)[by])
			require.NoError(t, err)
			require.Equal(t, read, again)
			return account, within, folded(read)
		}
		account, within, first := read(one)
		another, withinAnother, second := read(other)
		require.Equal(t, first == second, account == another, "%s and %s for %s", one, other, by)
		require.Equal(t, first == second, within == withinAnother, "%s and %s in an object for %s", one, other, by)
	})
}
