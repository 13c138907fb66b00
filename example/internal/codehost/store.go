package codehost

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Config says what a [Store] starts with. The zero value is usable.
type Config struct {
	// Seed chooses the generated data: the same seed gives the same data.
	Seed uint64
	// Now tells the time at which issues and comments are created. Nil means [time.Now].
	Now func() time.Time
}

// Store holds the data. It is safe for concurrent use.
type Store struct {
	now func() time.Time

	mu           sync.RWMutex
	users        []*User
	repositories []*Repository
	nodes        map[string]Node
	// issues holds the issues of each repository by its id, the newest first.
	issues map[string][]*Issue
	// lastNumber holds the highest issue number of each repository by its id, so that no number is
	// given twice after an issue was forgotten.
	lastNumber map[string]int
	// comments holds the comments of each issue by its id, the oldest first.
	comments map[string][]*Comment
	// createdIssues and addedComments are what clients left behind, the oldest first.
	createdIssues []*Issue
	addedComments []*Comment
	nextIssue     int
	nextComment   int

	subscribers map[*subscriber]struct{}
	closed      bool
}

// NewStore returns a store with generated data.
func NewStore(cfg Config) *Store {
	s := &Store{
		now:         cfg.Now,
		nodes:       make(map[string]Node),
		issues:      make(map[string][]*Issue),
		lastNumber:  make(map[string]int),
		comments:    make(map[string][]*Comment),
		subscribers: make(map[*subscriber]struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.generate(cfg.Seed)
	return s
}

// Node returns the object with the id, or nil.
func (s *Store) Node(id string) Node {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nodes[id]
}

// UserByLogin returns the user, or nil.
func (s *Store) UserByLogin(login string) *User {
	// Users and repositories never change once the store is made.
	for _, user := range s.users {
		if user.Login == login {
			return user
		}
	}
	return nil
}

// Repository returns the repository of that name, or nil.
func (s *Store) Repository(owner, name string) *Repository {
	for _, repository := range s.repositories {
		if repository.Name == name && repository.Owner.Login == owner {
			return repository
		}
	}
	return nil
}

// Repositories returns a page of the repositories, those of the owner unless it is nil.
func (s *Store) Repositories(owner *User, request PageRequest) (Page[*Repository], error) {
	if owner == nil {
		return pageOf(s.repositories, request)
	}
	var owned []*Repository
	for _, repository := range s.repositories {
		if repository.Owner == owner {
			owned = append(owned, repository)
		}
	}
	return pageOf(owned, request)
}

// Issues returns a page of the issues of a repository, the newest first. An empty state means any.
func (s *Store) Issues(repository *Repository, state IssueState, request PageRequest) (Page[*Issue], error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	issues := s.issues[repository.ID]
	if state == "" {
		return pageOf(issues, request)
	}
	var matching []*Issue
	for _, issue := range issues {
		if issue.State == state {
			matching = append(matching, issue)
		}
	}
	return pageOf(matching, request)
}

// Comments returns a page of the comments of an issue, the oldest first.
func (s *Store) Comments(issue *Issue, request PageRequest) (Page[*Comment], error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return pageOf(s.comments[issue.ID], request)
}

// Search returns at most first users, repositories and issues, in this order, whose name or title
// holds the query. Upper and lower case are the same.
func (s *Store) Search(query string, first int) ([]SearchResult, error) {
	if err := checkFirst(first, 0); err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(query); n < 1 || n > MaxSearch {
		return nil, fmt.Errorf("%w: query has %d characters and may have 1 to %d", ErrInvalid, n, MaxSearch)
	}
	found := search{query: strings.ToLower(query), room: first}
	for _, user := range s.users {
		found.add(user, user.Login, user.Name)
	}
	for _, repository := range s.repositories {
		found.add(repository, repository.Name, repository.Description)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, repository := range s.repositories {
		for _, issue := range s.issues[repository.ID] {
			found.add(issue, issue.Title)
		}
	}
	return found.results, nil
}

// search collects results until there is no room left.
type search struct {
	query   string
	room    int
	results []SearchResult
}

func (f *search) add(result SearchResult, texts ...string) {
	for _, text := range texts {
		if f.room > len(f.results) && strings.Contains(strings.ToLower(text), f.query) {
			f.results = append(f.results, result)
			return
		}
	}
}
