package tiers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ligature is one character of 3 bytes, of which NFKC makes 33.
const ligature = "\ufdfa"

// spellings are texts that are one account: they differ after the bytes that count.
func spellings(n int) []any {
	texts := make([]any, n)
	for i := range texts {
		texts[i] = strings.Repeat(ligature, 1366) + fmt.Sprint(i)
	}
	return texts
}

func TestATextThatNormalisationExpandsIsCutAtOnce(t *testing.T) {
	t.Parallel()
	plain, _ := tiers.Folded("p", strings.Repeat("\u0639", 2048))
	expanded, allowed := tiers.Folded("p", strings.Repeat(ligature, 1366))
	require.Equal(t, 1, allowed)
	require.LessOrEqual(t, expanded, 2*plain)
	require.LessOrEqual(t, expanded, 40<<10, "NFKC alone would make 45 KiB of it for each pass")
}

func TestAVariableUnderManyAliasesIsFoldedOnce(t *testing.T) {
	t.Parallel()
	text := any(strings.Repeat(ligature, 2767))
	once, _ := tiers.Folded("p", text)
	aliases := make([]any, 100)
	for i := range aliases {
		aliases[i] = text
	}
	bytes, allowed := tiers.Folded("p", aliases...)
	require.Equal(t, 100, allowed)
	require.Less(t, bytes, once+100*100, "each further alias hashes 1024 bytes")
}

func TestAnOperationFoldsABoundedNumberOfBytes(t *testing.T) {
	t.Parallel()
	object := map[string]any{"texts": spellings(4), "names": make([]int, 200)}
	objects := make([]any, 3000)
	for i := range objects {
		objects[i] = object
	}
	numbers := make([]any, 2000)
	for i := range numbers {
		numbers[i] = make([]int, 255)
	}
	for name, values := range map[string][]any{
		"spellings of one account": spellings(256),
		"a list of spellings":      {spellings(256)},
		"objects":                  objects,
		"numbers":                  numbers,
		"a text nobody sees":       {strings.Repeat("\u200b", 1<<20)},
		"characters nobody sees":   {strings.Repeat("\u200b", 1<<16), strings.Repeat("\u200b", 1<<15), strings.Repeat("\u00ad", 1<<16), strings.Repeat("\u2060", 1<<16), strings.Repeat("\u2061", 1<<16)},
	} {
		bytes, allowed := tiers.Folded("p", values...)
		require.Less(t, allowed, len(values), name)
		require.Less(t, bytes, tiers.MaxFolded+(1<<17), name)
	}
	long := make([]any, 16)
	for i := range long {
		long[i] = strings.Repeat("É", 511) + string(rune('a'+i))
	}
	_, allowed := tiers.Folded("p", long...)
	require.Equal(t, 16, allowed, "as many texts as may differ, as long as they count")
}

// Texts behind which nothing more was read had one account, for everybody.
func TestATextHasTheAccountOfAllThatItFoldsTo(t *testing.T) {
	t.Parallel()
	unseen := strings.Repeat("\u200b", 33_000)
	for _, spelled := range []string{"ada@example.org" + unseen, unseen + "ada@example.org", unseen[:60_000] + "ADA@" + unseen[60_000:] + "example.org"} {
		require.Equal(t, tiers.PartOf("p", "ada@example.org"), tiers.PartOf("p", spelled))
	}
	require.Equal(t, tiers.PartOf("p", ""), tiers.PartOf("p", unseen))
	require.Equal(t, tiers.PartOf("p", strings.Repeat("a", 2000)), tiers.PartOf("p", strings.Repeat("a", 1<<20)))
	for _, length := range []int{tiers.MaxFolded, tiers.MaxFolded + 1, 1 << 20} {
		require.Empty(t, tiers.PartOf("p", "ada@example.org"+strings.Repeat("\u00ad", length/2)), "it is refused")
	}
}

func TestToFindALongTextAgainCounts(t *testing.T) {
	t.Parallel()
	long := any("ada" + strings.Repeat("\u00ad", 100_000))
	again := make([]any, 1<<14)
	for i := range again {
		again[i] = long
	}
	_, allowed := tiers.Folded("p", again...)
	require.Greater(t, allowed, 16)
	require.Less(t, allowed, 100)
}

func TestMoreToFoldThanFitsIsRefused(t *testing.T) {
	t.Parallel()
	s := compiled(t, bruteForce)
	signIns := func(emails ...any) *tiers.Rules {
		c := logins(emails...)
		for i := range c {
			c[i].field = "Mutation.signIn"
		}
		rules := s.Rules(tiers.Subject{Tenant: "x"}, c.selection())
		return &rules
	}
	few := signIns(spellings(2)...)
	require.Nil(t, few.TooMany)
	require.Len(t, few.Across, 1)
	many := signIns(spellings(256)...)
	require.Equal(t, "256 KiB of values, as far as they are read and folded,", many.TooMany.Most)
	require.Empty(t, many.Across)
	text := any(strings.Repeat(ligature, 2767))
	aliases := make([]any, 100)
	for i := range aliases {
		aliases[i] = text
	}
	require.Nil(t, signIns(aliases...).TooMany)
	same := make([]any, 1<<13)
	for i := range same {
		same[i] = "ada@example.org"
	}
	require.Nil(t, signIns(same...).TooMany, "of two groups")
}

func TestWhatIsKeptOfATextBeginsItsNFKC(t *testing.T) {
	t.Parallel()
	runes := rapid.SampledFrom([]rune("aé\u0301\u0307\u0316\u0345\ufdfaiİıſßΐ각ᄀ\u11a8\u00a8ﬀ"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(runes, 0, 3000, -1).Draw(t, "text")
		kept, whole := tiers.Compatible(text), norm.NFKC.String(text)
		if !strings.HasPrefix(whole, kept) || len(kept) < min(len(whole), 3900) || len(kept) > 4096 {
			t.Fatalf("%d bytes of %d", len(kept), len(whole))
		}
	})
}
