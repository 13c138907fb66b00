package cost_test

import (
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func TestConcurrentFirstRequestsCompileOnce(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	doc := parse(t, schema, `{ e1 { id } }`, false)
	synctest.Test(t, func(t *testing.T) {
		var compiled, answered atomic.Int32
		blocked := make(chan struct{})
		plans := make([]*cost.Plan, 16)
		for i := range plans {
			go func() {
				plans[i], _ = estimator.PlanWith(doc.Operations[0], func() (*cost.Plan, error) {
					compiled.Add(1)
					<-blocked
					return estimator.Compile(doc, doc.Operations[0])
				})
				answered.Add(1)
			}()
		}
		synctest.Wait()
		require.Equal(t, int32(1), compiled.Load())
		require.Zero(t, answered.Load(), "the others wait")
		close(blocked)
		synctest.Wait()
		require.Equal(t, int32(16), answered.Load())
		require.Equal(t, int32(1), compiled.Load())
		for _, plan := range plans {
			require.NotNil(t, plan)
			require.Same(t, plans[0], plan)
		}
	})
}

func TestACallerWhoPanicsLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	doc := parse(t, schema, `{ e1 { id } }`, false)
	synctest.Test(t, func(t *testing.T) {
		var compiled, answered, panicked atomic.Int32
		blocked := make(chan struct{})
		for range 16 {
			go func() {
				defer func() {
					if recover() != nil {
						panicked.Add(1)
					}
				}()
				plan, err := estimator.PlanWith(doc.Operations[0], func() (*cost.Plan, error) {
					if compiled.Add(1) == 1 {
						<-blocked
						panic("the first one")
					}
					return estimator.Compile(doc, doc.Operations[0])
				})
				if plan != nil && err == nil {
					answered.Add(1)
				}
			}()
		}
		synctest.Wait()
		close(blocked)
		synctest.Wait()
		require.Equal(t, int32(1), panicked.Load())
		require.Equal(t, int32(15), answered.Load())
		require.Equal(t, int32(2), compiled.Load())
	})
}

// Servers without a cache of documents parse each request again.
func TestAnOperationParsedAgainIsFoundByItsText(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	const text = `query A($n: Int) { items(first: $n) { id } } query B { e1 { id } }`
	var documents []weak.Pointer[ast.OperationDefinition]
	plans := map[*cost.Plan]bool{}
	for range 20 {
		doc := parse(t, schema, text, false)
		for _, op := range doc.Operations {
			plan, err := estimator.PlanText(text, doc, op)
			require.NoError(t, err)
			plans[plan] = true
			documents = append(documents, weak.Make(op))
		}
	}
	require.Len(t, plans, 2)
	count, _ := estimator.Cached()
	require.Equal(t, 2, count)
	runtime.GC()
	for _, doc := range documents {
		require.Nil(t, doc.Value(), "a document stays in memory")
	}
	runtime.KeepAlive(estimator)
}

func TestADocumentThatIsUsedAgainIsFoundByItsPointer(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	const text = `query A($n: Int) { items(first: $n) { id } }`
	doc := parse(t, schema, text, false)
	plan, err := estimator.PlanText(text, doc, doc.Operations[0])
	require.NoError(t, err)
	for range 3 {
		again, err := estimator.PlanText(text, doc, doc.Operations[0])
		require.NoError(t, err)
		require.Same(t, plan, again)
	}
	count, _ := estimator.Cached()
	require.Equal(t, 2, count, "one entry for the text, one for the pointer")
	again, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	require.Same(t, plan, again)
}

// A document takes up to two hundred times the memory of its text. How long one stays in memory is the affair of the cache of
// documents, which counts it.
func TestThePlanOfAnOperationKeepsNoDocumentInMemory(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	for name, ask := range map[string]func(text string, doc *ast.QueryDocument) error{
		"by its pointer": func(_ string, doc *ast.QueryDocument) error {
			_, err := estimator.Plan(doc, doc.Operations[0])
			return err
		},
		"priced and outlined": func(text string, doc *ast.QueryDocument) error {
			_, err := estimator.PlanText(text, doc, doc.Operations[0])
			if err == nil {
				_, err = estimator.OutlineText(text, doc, doc.Operations[0])
			}
			return err
		},
		"priced twice": func(text string, doc *ast.QueryDocument) error {
			_, err := estimator.PlanText(text, doc, doc.Operations[0])
			if err == nil {
				_, err = estimator.PlanText(text, doc, doc.Operations[0])
			}
			return err
		},
	} {
		text := fmt.Sprintf("{ e1 { id } } # %s", name)
		doc := parse(t, schema, text, false)
		require.NoError(t, ask(text, doc), name)
		kept := weak.Make(doc.Operations[0])
		runtime.GC()
		require.Nil(t, kept.Value(), name)
	}
	runtime.KeepAlive(estimator)
}

// To price and to settle an operation is to use its document once: only one that is cached is used twice.
func TestAnOperationThatIsPricedAndOutlinedHasOneEntry(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	const text = `{ e1 { id } }`
	for range 3 {
		doc := parse(t, schema, text, false)
		_, err := estimator.PlanText(text, doc, doc.Operations[0])
		require.NoError(t, err)
		_, err = estimator.OutlineText(text, doc, doc.Operations[0])
		require.NoError(t, err)
		count, _ := estimator.Cached()
		require.Equal(t, 1, count)
	}
}

func TestAnOperationAtTheAddressOfOneThatIsGoneHasItsOwnPrice(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{PlanCacheSize: 1 << 16})
	seen, again := map[uintptr]bool{}, 0
	const rounds, enough = 500, 10
	for round := 0; round < rounds && again < enough; round++ {
		for i := range 50 {
			field := []string{"e1", "e2"}[(i+round)%2]
			doc := raw(t, "{ "+field+" { id } }")
			if address := reflect.ValueOf(doc.Operations[0]).Pointer(); seen[address] {
				again++
			} else {
				seen[address] = true
			}
			plan, err := estimator.Plan(doc, doc.Operations[0])
			require.NoError(t, err)
			price, err := plan.Evaluate(nil)
			require.NoError(t, err)
			require.Equal(t, map[string]float64{"e1": 100, "e2": 200}[field], price.Field)
		}
		runtime.GC()
	}
	require.GreaterOrEqual(t, again, enough, "no address was used again")
	count, _ := estimator.Cached()
	require.LessOrEqual(t, count, len(seen))
}

// A plan must not be taken for that of another operation, whatever a caller says about the text.
func TestATextThatDoesNotTellOperationsApartIsNotUsed(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	const text = `{ rateLimit } { e1 { id } } query A { rateLimit } query A { e2 { id } }`
	doc := raw(t, text)
	for i, want := range []float64{0, 100, 0, 200} {
		plan, err := estimator.PlanText(text, doc, doc.Operations[i])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		require.Equal(t, want, price.Field)
	}
	cheap, dear := raw(t, `{ rateLimit }`), raw(t, `{ e2 { id } }`)
	for _, said := range []string{`{ rateLimit }`, ""} {
		_, err := estimator.PlanText(said, cheap, cheap.Operations[0])
		require.NoError(t, err)
		plan, err := estimator.PlanText(said, dear, dear.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		require.Equal(t, 200.0, price.Field)
	}
	_, err := estimator.PlanText("{ a }", nil, nil)
	require.ErrorIs(t, err, cost.ErrMalformed)
}

// A plan has names that are parts of the text, and so keeps all of it.
func TestPlansOfLongTextsFillTheCache(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		estimator, schema := newEstimator(t, "bypass", cost.Config{PlanCacheSize: 8})
		for i := range 8 {
			text := fmt.Sprintf("{ x%d: e1 { id } } # %0100000d", i, 0)
			doc := parse(t, schema, text, false)
			if !known {
				text = ""
			}
			_, err := estimator.PlanText(text, doc, doc.Operations[0])
			require.NoError(t, err)
		}
		count, units := estimator.Cached()
		require.Equal(t, 4, count)
		require.LessOrEqual(t, units, 8*512)
	}
}

func TestFindingAPlanAllocatesNothing(t *testing.T) {
	o := loadOperation(t, sharedVariables)
	estimator, schema, text := o.estimator, o.schema, o.text
	known, one, other := parse(t, schema, text, false), parse(t, schema, text, false), parse(t, schema, text, false)
	find := func() {
		_, _ = estimator.Plan(known, known.Operations[0])
		// Two documents in turn are not taken for cached ones.
		_, _ = estimator.PlanText(text, one, one.Operations[0])
		_, _ = estimator.PlanText(text, other, other.Operations[0])
	}
	find()
	require.Zero(t, testing.AllocsPerRun(100, find))
	count, _ := estimator.Cached()
	require.Equal(t, 2, count)
}
