package codehost

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The sizes of the generated data. They stay within what the schema declares with @listSize.
const (
	generatedRepositories = 24
	fewestIssues          = 12
	mostIssues            = 40
	mostComments          = 14
	mostTopics            = 4
)

// epoch is when the first repository was created. A constant keeps the data the same on every day.
var epoch = time.Date(2024, time.March, 1, 9, 0, 0, 0, time.UTC)

var (
	people = []User{
		{Login: "mira", Name: "Mira Lindqvist"},
		{Login: "jonas", Name: "Jonas Weber"},
		{Login: "priya", Name: "Priya Raman"},
		{Login: "tomas", Name: "Tomas Novak"},
		{Login: "lena", Name: "Lena Ortiz"},
		{Login: "kofi", Name: "Kofi Mensah"},
		{Login: "yuki", Name: "Yuki Tanaka"},
		{Login: "sara", Name: "Sara Haddad"},
	}
	palette = []Label{
		{Name: "bug", Color: "d73a4a"},
		{Name: "documentation", Color: "0075ca"},
		{Name: "enhancement", Color: "a2eeef"},
		{Name: "good first issue", Color: "7057ff"},
		{Name: "performance", Color: "fbca04"},
		{Name: "question", Color: "d876e3"},
	}
	adjectives = []string{"swift", "quiet", "amber", "hollow", "bright", "paper", "stone", "lucky"}
	things     = []string{"compass", "harbor", "lantern", "orchard", "beacon", "quarry", "saddle", "anchor"}
	subjects   = []string{"parser", "scheduler", "cache", "importer", "renderer", "queue", "index", "proxy"}
	troubles   = []string{
		"drops the last record", "blocks on an empty input", "ignores the timeout", "leaks a connection",
		"reports the wrong line", "is slow on large files", "needs an example", "fails on Windows",
	}
	remarks = []string{
		"I can reproduce this on the main branch.", "A smaller example would help.",
		"Fixed in the next release, please try it.", "This looks related to the change of last week.",
		"Happy to review a patch.", "The log shows the same failure here.",
	}
	topics = []string{"cli", "database", "golang", "graphql", "library", "networking", "testing", "tools"}
)

// generate fills an empty store. It draws from one source in one order, so that a seed decides all.
func (s *Store) generate(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // Made-up data: nobody gains by guessing it.
	for i := range people {
		user := people[i]
		user.ID = "U_" + strconv.Itoa(i+1)
		s.users = append(s.users, &user)
		s.nodes[user.ID] = &user
	}
	for i := range generatedRepositories {
		repository := s.generateRepository(random, i)
		s.repositories = append(s.repositories, repository)
		s.nodes[repository.ID] = repository
		for range fewestIssues + random.IntN(mostIssues-fewestIssues+1) {
			s.generateIssue(random, repository)
		}
	}
	slices.SortFunc(s.repositories, func(a, b *Repository) int { return strings.Compare(a.Name, b.Name) })
}

func (s *Store) generateRepository(random *rand.Rand, i int) *Repository {
	thing := things[i%len(things)]
	// Three different adjectives a thing: every name is different, whatever the seed.
	adjective := adjectives[(i/len(things)+i)%len(adjectives)]
	owner := s.users[random.IntN(len(s.users))]
	own := slices.Clone(topics)
	random.Shuffle(len(own), func(a, b int) { own[a], own[b] = own[b], own[a] })
	return &Repository{
		ID:          "R_" + strconv.Itoa(i+1),
		Name:        adjective + "-" + thing,
		Description: fmt.Sprintf("A %s %s for everyday work.", adjective, subjects[random.IntN(len(subjects))]),
		Stars:       random.IntN(5000),
		CreatedAt:   epoch.AddDate(0, 0, i),
		Owner:       owner,
		Topics:      own[:1+random.IntN(mostTopics)],
		Labels:      palette,
	}
}

func (s *Store) generateIssue(random *rand.Rand, repository *Repository) {
	state := Open
	if random.IntN(3) == 0 {
		state = Closed
	}
	labels := slices.Clone(palette)
	random.Shuffle(len(labels), func(a, b int) { labels[a], labels[b] = labels[b], labels[a] })
	title := fmt.Sprintf("The %s %s", subjects[random.IntN(len(subjects))], troubles[random.IntN(len(troubles))])
	issue := s.addIssue(&Issue{
		Title:      title,
		Body:       title + ". " + remarks[random.IntN(len(remarks))],
		State:      state,
		CreatedAt:  repository.CreatedAt.AddDate(0, 0, 1+s.lastNumber[repository.ID]),
		Author:     s.users[random.IntN(len(s.users))],
		Repository: repository,
		Labels:     labels[:random.IntN(MaxIssueLabels+1)],
	})
	for i := range random.IntN(mostComments + 1) {
		s.addComment(&Comment{
			Body:      remarks[random.IntN(len(remarks))],
			CreatedAt: issue.CreatedAt.Add(time.Duration(i+1) * time.Hour),
			Author:    s.users[random.IntN(len(s.users))],
			Issue:     issue,
		})
	}
}
