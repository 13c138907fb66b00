// Package codehost is the data behind the example: the repositories, issues and comments of a small
// code host, kept in memory.
//
// Everything that a [Store] hands out is immutable and may be read without a lock.
package codehost

import (
	"errors"
	"time"
)

// Errors of a [Store]. Every error it returns matches one of them, and its text is fit for clients.
var (
	// ErrNotFound says that no such object exists, or that it exists no longer.
	ErrNotFound = errors.New("not found")
	// ErrInvalid says that an argument is out of its bounds.
	ErrInvalid = errors.New("invalid argument")
	// ErrBusy says that the store takes no further subscriber.
	ErrBusy = errors.New("too many subscribers")
)

// Bounds of what a client can ask for or leave behind. They are constants because they keep the
// memory of a server bounded that anyone can write to.
const (
	// MaxFirst is the largest page.
	MaxFirst = 100
	// MaxCreated is how many created issues, and how many added comments, are kept. The oldest goes
	// first.
	MaxCreated = 1000
	// MaxTitle is the longest title of an issue in characters.
	MaxTitle = 200
	// MaxBody is the longest body of an issue or a comment in characters.
	MaxBody = 4000
	// MaxIssueLabels is how many labels an issue can have.
	MaxIssueLabels = 3
	// MaxSearch is the longest search query in characters.
	MaxSearch = 100
	// MaxSubscribers is how many streams of issues can be open at once.
	MaxSubscribers = 1000
)

// Node is anything that has an id.
type Node interface {
	IsNode()
	// NodeID returns the id, which no other node has.
	NodeID() string
}

// SearchResult is what a search can find.
type SearchResult interface {
	IsSearchResult()
}

// User is a person who owns repositories and writes.
type User struct {
	ID    string
	Login string
	Name  string
}

// Repository is a project of a user.
type Repository struct {
	ID          string
	Name        string
	Description string
	Stars       int
	CreatedAt   time.Time
	Owner       *User
	Topics      []string
	Labels      []Label
}

// Label marks issues of a repository.
type Label struct {
	Name  string
	Color string
}

// IssueState says whether an issue awaits work.
type IssueState string

// States of an issue.
const (
	Open   IssueState = "OPEN"
	Closed IssueState = "CLOSED"
)

// Issue is a question or a defect of a repository.
type Issue struct {
	ID string
	// Number counts the issues of the repository from 1.
	Number     int
	Title      string
	Body       string
	State      IssueState
	CreatedAt  time.Time
	Author     *User
	Repository *Repository
	Labels     []Label
}

// Comment is an answer to an issue.
type Comment struct {
	ID        string
	Body      string
	CreatedAt time.Time
	Author    *User
	Issue     *Issue
}

// IsNode marks the type as a [Node].
func (*User) IsNode() {}

// NodeID returns the id of the user.
func (u *User) NodeID() string { return u.ID }

// IsSearchResult marks the type as a [SearchResult].
func (*User) IsSearchResult() {}

// IsNode marks the type as a [Node].
func (*Repository) IsNode() {}

// NodeID returns the id of the repository.
func (r *Repository) NodeID() string { return r.ID }

// IsSearchResult marks the type as a [SearchResult].
func (*Repository) IsSearchResult() {}

// IsNode marks the type as a [Node].
func (*Issue) IsNode() {}

// NodeID returns the id of the issue.
func (i *Issue) NodeID() string { return i.ID }

// IsSearchResult marks the type as a [SearchResult].
func (*Issue) IsSearchResult() {}

// IsNode marks the type as a [Node].
func (*Comment) IsNode() {}

// NodeID returns the id of the comment.
func (c *Comment) NodeID() string { return c.ID }
