package cost_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

var (
	documents  = flag.Int("documents", 800, "how many operations are tried to find the one that buys most bytes for a point")
	searchSeed = flag.Uint64("search-seed", 13, "what the search for that operation begins with")
)

const (
	// longestText is how many bytes a text of the schema has at most, as JSON.
	longestText = 1000
	// longestName is that of a response name.
	longestName = 10
	// mostObjects keeps prices below their largest.
	mostObjects = 1_000_000
)

// issues are lists of an operation that a search tries: how long each is, how many texts each object has, and the lists in it.
type issues struct {
	first, texts int
	lists        []*issues
}

func (l *issues) clone() *issues {
	c := &issues{first: l.first, texts: l.texts}
	for _, list := range l.lists {
		c.lists = append(c.lists, list.clone())
	}
	return c
}

// objects is how many the answer has.
func (l *issues) objects() int {
	within := 1
	for _, list := range l.lists {
		within += list.objects()
	}
	return l.first * within
}

// mutate changes one thing.
func (l *issues) mutate(random *rand.Rand, depth int) {
	if len(l.lists) > 0 && random.IntN(3) > 0 {
		l.lists[random.IntN(len(l.lists))].mutate(random, depth+1)
		return
	}
	const deepest, mostLists = 4, 4
	switch random.IntN(4) {
	case 0:
		l.texts = max(0, l.texts+random.IntN(21)-10)
	case 1:
		l.first = random.IntN(60)
	case 2:
		if depth < deepest && len(l.lists) < mostLists {
			l.lists = append(l.lists, &issues{first: random.IntN(60), texts: random.IntN(40)})
		}
	default:
		if len(l.lists) > 0 {
			i := random.IntN(len(l.lists))
			l.lists = slices.Delete(l.lists, i, i+1)
		}
	}
}

// write writes what is selected of each object, whose names go on from the last one. It returns how many bytes an object
// has where each list and each text is as long as it may be.
func (l *issues) write(b *strings.Builder, names *int) int {
	name := func() string {
		*names++
		return fmt.Sprintf("a%d", *names)
	}
	b.WriteString("{ __typename ")
	bytes := len(`{"__typename":"Issue"},`)
	for i := range l.texts {
		alias := name()
		fmt.Fprintf(b, "%s: %s ", alias, []string{"title", "body"}[i%2])
		bytes += len(alias) + len(`"":,`) + longestText
	}
	for _, list := range l.lists {
		alias := name()
		fmt.Fprintf(b, "%s: issues(first: %d) ", alias, list.first)
		bytes += len(alias) + len(`"":[],`) + list.first*list.write(b, names)
	}
	b.WriteString("} ")
	return bytes
}

// A point buys so many texts: as many as an object has, or ten further aliases, with their names and what is around them.
func TestAPointBuysNoMoreBytesThanThePageSays(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, aliasSchema, "")
	estimator, err := cost.New(schema, cost.Config{Shape: cost.Shape{MaxAliases: cost.None}})
	require.NoError(t, err)
	const most = 10*(longestText+longestName+4) + longestName + len(`{"__typename":"Issue"},`) + 9
	random := rand.New(rand.NewPCG(*searchSeed, 3))
	// The operations that bought most so far; the next one is a change of one of them.
	type candidate struct {
		root     *issues
		perPoint float64
		text     string
	}
	best := make([]candidate, 8)
	for range *documents {
		at := random.IntN(len(best))
		root := &issues{first: 1}
		if best[at].root != nil {
			root = best[at].root.clone()
		}
		for range 1 + random.IntN(3) {
			root.mutate(random, 0)
		}
		root.first, root.texts = 1, 0
		if root.objects() > mostObjects {
			continue
		}
		var b strings.Builder
		bytes := root.write(&b, new(int))
		doc := raw(t, b.String())
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		// An operation that reads nothing costs nothing, and has a request to pay.
		points := int(max(1, price.Points()))
		require.LessOrEqual(t, bytes, points*most, b.String())
		if perPoint := float64(bytes) / float64(points); perPoint >= best[at].perPoint {
			best[at] = candidate{root, perPoint, b.String()}
		}
	}
	worst := slices.MaxFunc(best, func(a, b candidate) int { return int(a.perPoint) - int(b.perPoint) })
	t.Logf("%.0f of %d bytes a point: %s", worst.perPoint, most, worst.text)
	require.Greater(t, worst.perPoint, 0.8*float64(most), "the search comes near it")
}
