package codehost_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
)

func newStore() *codehost.Store {
	return codehost.NewStore(codehost.Config{
		Seed: 1,
		Now:  func() time.Time { return time.Date(2026, time.January, 2, 0, 0, 0, 0, time.UTC) },
	})
}

var all = codehost.PageRequest{First: codehost.MaxFirst}

// repositories returns all repositories of the store.
func repositories(t *testing.T, store *codehost.Store) []*codehost.Repository {
	t.Helper()
	page, err := store.Repositories(nil, all)
	require.NoError(t, err)
	require.False(t, page.HasNext)
	return page.Items
}

func TestASeedDecidesTheData(t *testing.T) {
	t.Parallel()
	one, again := newStore(), newStore()
	require.Equal(t, repositories(t, one), repositories(t, again))
	other := codehost.NewStore(codehost.Config{Seed: 2})
	require.NotEqual(t, repositories(t, one), repositories(t, other))
}

func TestGeneratedDataKeepsTheSizesOfTheSchema(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		store := codehost.NewStore(codehost.Config{Seed: seed})
		names := map[string]bool{}
		for _, repository := range repositories(t, store) {
			require.False(t, names[repository.Name], "the name %s is given twice", repository.Name)
			names[repository.Name] = true
			require.LessOrEqual(t, len(repository.Topics), 4)
			require.LessOrEqual(t, len(repository.Labels), 6)
			issues, err := store.Issues(repository, "", all)
			require.NoError(t, err)
			require.NotEmpty(t, issues.Items)
			for _, issue := range issues.Items {
				require.LessOrEqual(t, len(issue.Labels), codehost.MaxIssueLabels)
			}
		}
	}
}

func TestPagesJoinIntoTheList(t *testing.T) {
	t.Parallel()
	store := newStore()
	want := repositories(t, store)
	var got []*codehost.Repository
	request := codehost.PageRequest{First: 7}
	for {
		page, err := store.Repositories(nil, request)
		require.NoError(t, err)
		require.Equal(t, len(want), page.Total)
		got = append(got, page.Items...)
		if !page.HasNext {
			break
		}
		request.After = page.Items[len(page.Items)-1].ID
	}
	require.Equal(t, want, got)
}

func TestArgumentsOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	store := newStore()
	author := store.UserByLogin("mira")
	stream := func(first int) error {
		_, err := store.IssuesCreated(t.Context(), "", first)
		return err
	}
	page := func(request codehost.PageRequest) error {
		_, err := store.Repositories(nil, request)
		return err
	}
	find := func(query string, first int) error {
		_, err := store.Search(query, first)
		return err
	}
	create := func(issue codehost.NewIssue) error {
		_, err := store.CreateIssue(author, issue)
		return err
	}
	comment := func(body string) error {
		_, err := store.AddComment(author, "I_1", body)
		return err
	}
	for name, err := range map[string]error{
		"a negative page":      page(codehost.PageRequest{First: -1}),
		"a page too long":      page(codehost.PageRequest{First: codehost.MaxFirst + 1}),
		"a cursor of nowhere":  page(codehost.PageRequest{First: 1, After: "I_1"}),
		"an empty search":      find("", 1),
		"a search too long":    find(strings.Repeat("x", codehost.MaxSearch+1), 1),
		"too many results":     find("x", codehost.MaxFirst+1),
		"a stream of nothing":  stream(0),
		"a stream too long":    stream(codehost.MaxFirst + 1),
		"an issue of no title": create(codehost.NewIssue{RepositoryID: "R_1"}),
		"a title too long":     create(codehost.NewIssue{RepositoryID: "R_1", Title: strings.Repeat("é", codehost.MaxTitle+1)}),
		"a body too long":      create(codehost.NewIssue{RepositoryID: "R_1", Title: "x", Body: strings.Repeat("x", codehost.MaxBody+1)}),
		"a label twice":        create(codehost.NewIssue{RepositoryID: "R_1", Title: "x", Labels: []string{"bug", "bug"}}),
		"too many labels":      create(codehost.NewIssue{RepositoryID: "R_1", Title: "x", Labels: make([]string, 4)}),
		"an empty comment":     comment(""),
	} {
		require.ErrorIs(t, err, codehost.ErrInvalid, name)
	}
	require.ErrorIs(t, create(codehost.NewIssue{RepositoryID: "I_1", Title: "x"}), codehost.ErrNotFound)
	require.ErrorIs(t, create(codehost.NewIssue{RepositoryID: "R_1", Title: "x", Labels: []string{"none"}}), codehost.ErrNotFound)
	require.NoError(t, create(codehost.NewIssue{RepositoryID: "R_1", Title: strings.Repeat("é", codehost.MaxTitle)}))
}

func TestCreatedIssuesAreBounded(t *testing.T) {
	t.Parallel()
	store := newStore()
	author := store.UserByLogin("mira")
	repository, ok := store.Node("R_1").(*codehost.Repository)
	require.True(t, ok)
	before, err := store.Issues(repository, "", codehost.PageRequest{})
	require.NoError(t, err)

	first, err := store.CreateIssue(author, codehost.NewIssue{RepositoryID: "R_1", Title: "first"})
	require.NoError(t, err)
	answer, err := store.AddComment(author, first.ID, "answer")
	require.NoError(t, err)
	var last *codehost.Issue
	for range codehost.MaxCreated {
		last, err = store.CreateIssue(author, codehost.NewIssue{RepositoryID: "R_1", Title: "next"})
		require.NoError(t, err)
	}

	after, err := store.Issues(repository, "", codehost.PageRequest{First: 1})
	require.NoError(t, err)
	require.Equal(t, before.Total+codehost.MaxCreated, after.Total)
	require.Equal(t, []*codehost.Issue{last}, after.Items)
	require.Equal(t, first.Number+codehost.MaxCreated, last.Number, "no number is given twice")
	require.Nil(t, store.Node(first.ID))
	require.Nil(t, store.Node(answer.ID), "the comments of a forgotten issue are forgotten")
	require.NotNil(t, store.Node("I_1"), "generated issues stay")
}

func TestAddedCommentsAreBounded(t *testing.T) {
	t.Parallel()
	store := newStore()
	author := store.UserByLogin("mira")
	issue, ok := store.Node("I_1").(*codehost.Issue)
	require.True(t, ok)
	before, err := store.Comments(issue, codehost.PageRequest{})
	require.NoError(t, err)
	first, err := store.AddComment(author, "I_1", "first")
	require.NoError(t, err)
	for range codehost.MaxCreated {
		_, err = store.AddComment(author, "I_1", "next")
		require.NoError(t, err)
	}
	after, err := store.Comments(issue, codehost.PageRequest{})
	require.NoError(t, err)
	require.Equal(t, before.Total+codehost.MaxCreated, after.Total)
	require.Nil(t, store.Node(first.ID))
}

func TestAStreamEndsWithItsContextAndWithTheStore(t *testing.T) {
	t.Parallel()
	store := newStore()
	ctx, cancel := context.WithCancel(t.Context())
	cancelled, err := store.IssuesCreated(ctx, "", 1)
	require.NoError(t, err)
	open, err := store.IssuesCreated(t.Context(), "", 1)
	require.NoError(t, err)

	cancel()
	_, more := <-cancelled
	require.False(t, more)
	store.Close()
	_, more = <-open
	require.False(t, more)
	_, err = store.IssuesCreated(t.Context(), "", 1)
	require.ErrorIs(t, err, codehost.ErrBusy)
}

func TestAStreamHoldsItsIssuesForASlowReader(t *testing.T) {
	t.Parallel()
	store := newStore()
	author := store.UserByLogin("mira")
	stream, err := store.IssuesCreated(t.Context(), "R_1", 2)
	require.NoError(t, err)
	for _, repository := range []string{"R_1", "R_2", "R_1", "R_1"} {
		_, err := store.CreateIssue(author, codehost.NewIssue{RepositoryID: repository, Title: "x"})
		require.NoError(t, err)
	}
	var got []string
	for issue := range stream {
		got = append(got, issue.Repository.ID)
	}
	require.Equal(t, []string{"R_1", "R_1"}, got)
}

func TestSubscribersAreBounded(t *testing.T) {
	t.Parallel()
	store := newStore()
	defer store.Close()
	for range codehost.MaxSubscribers {
		_, err := store.IssuesCreated(t.Context(), "", 1)
		require.NoError(t, err)
	}
	_, err := store.IssuesCreated(t.Context(), "", 1)
	require.ErrorIs(t, err, codehost.ErrBusy)
}

func TestAStoreServesReadersAndWritersAtOnce(t *testing.T) {
	t.Parallel()
	store := newStore()
	author := store.UserByLogin("mira")
	repository, ok := store.Node("R_1").(*codehost.Repository)
	require.True(t, ok)
	before, err := store.Issues(repository, "", codehost.PageRequest{})
	require.NoError(t, err)
	const writers, each = 8, 25
	stream, err := store.IssuesCreated(t.Context(), "", 100)
	require.NoError(t, err)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range each {
				issue, err := store.CreateIssue(author, codehost.NewIssue{RepositoryID: "R_1", Title: "x"})
				if err == nil {
					_, err = store.AddComment(author, issue.ID, "y")
				}
				if err == nil {
					_, err = store.Search("x", 5)
				}
				if err == nil {
					_, err = store.Issues(repository, codehost.Open, all)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	after, err := store.Issues(repository, "", codehost.PageRequest{})
	require.NoError(t, err)
	require.Equal(t, before.Total+writers*each, after.Total)
	received := 0
	for range stream {
		received++
	}
	require.Equal(t, 100, received)
}
