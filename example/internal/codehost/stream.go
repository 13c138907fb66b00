package codehost

import (
	"context"
	"fmt"
)

// subscriber is one open stream of created issues.
type subscriber struct {
	// repositoryID is the repository whose issues are wanted. Empty means all.
	repositoryID string
	// issues has room for everything that is ever sent, so that sending never waits for the reader.
	issues chan *Issue
	// left is how many issues are still to be sent.
	left int
	// forget takes back what watches the context.
	forget func() bool
}

// IssuesCreated streams the next issues that are created, between 1 and [MaxFirst], in the
// repository of the id or, if it is empty, in any. The channel is closed after the last of them,
// when ctx is done, and when the store is closed.
func (s *Store) IssuesCreated(ctx context.Context, repositoryID string, first int) (<-chan *Issue, error) {
	if err := checkFirst(first, 1); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if repositoryID != "" {
		if _, ok := s.nodes[repositoryID].(*Repository); !ok {
			return nil, fmt.Errorf("%w: no repository has this id", ErrNotFound)
		}
	}
	if s.closed || len(s.subscribers) >= MaxSubscribers {
		return nil, fmt.Errorf("%w: try again later", ErrBusy)
	}
	sub := &subscriber{repositoryID: repositoryID, issues: make(chan *Issue, first), left: first}
	sub.forget = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unsubscribe(sub)
	})
	s.subscribers[sub] = struct{}{}
	return sub.issues, nil
}

// Close ends all streams. What else the store does goes on working.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for sub := range s.subscribers {
		s.unsubscribe(sub)
	}
}

// publish sends the issue to those who want it. The lock is held.
func (s *Store) publish(issue *Issue) {
	for sub := range s.subscribers {
		if sub.repositoryID != "" && sub.repositoryID != issue.Repository.ID {
			continue
		}
		sub.issues <- issue
		sub.left--
		if sub.left == 0 {
			s.unsubscribe(sub)
		}
	}
}

// unsubscribe closes the stream, once. The lock is held.
func (s *Store) unsubscribe(sub *subscriber) {
	if _, open := s.subscribers[sub]; !open {
		return
	}
	delete(s.subscribers, sub)
	sub.forget()
	close(sub.issues)
}
