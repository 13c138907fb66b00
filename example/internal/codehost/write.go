package codehost

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// NewIssue is an issue to be created.
type NewIssue struct {
	RepositoryID string
	// Title has 1 to [MaxTitle] characters.
	Title string
	// Body has at most [MaxBody] characters.
	Body string
	// Labels are names of labels of the repository, at most [MaxIssueLabels], none twice.
	Labels []string
}

// CreateIssue adds an issue and tells the subscribers. The oldest created issue is forgotten when
// there are more than [MaxCreated].
func (s *Store) CreateIssue(author *User, issue NewIssue) (*Issue, error) {
	if err := checkText("title", issue.Title, 1, MaxTitle); err != nil {
		return nil, err
	}
	if err := checkText("body", issue.Body, 0, MaxBody); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	repository, ok := s.nodes[issue.RepositoryID].(*Repository)
	if !ok {
		return nil, fmt.Errorf("%w: no repository has this id", ErrNotFound)
	}
	labels, err := labelsOf(repository, issue.Labels)
	if err != nil {
		return nil, err
	}
	created := s.addIssue(&Issue{
		Title:      issue.Title,
		Body:       issue.Body,
		State:      Open,
		CreatedAt:  s.now().UTC(),
		Author:     author,
		Repository: repository,
		Labels:     labels,
	})
	s.createdIssues = append(s.createdIssues, created)
	if len(s.createdIssues) > MaxCreated {
		s.forgetIssue(s.createdIssues[0])
		s.createdIssues = slices.Delete(s.createdIssues, 0, 1)
	}
	s.publish(created)
	return created, nil
}

// AddComment adds a comment to an issue. The oldest added comment is forgotten when there are more
// than [MaxCreated].
func (s *Store) AddComment(author *User, issueID, body string) (*Comment, error) {
	if err := checkText("body", body, 1, MaxBody); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	issue, ok := s.nodes[issueID].(*Issue)
	if !ok {
		return nil, fmt.Errorf("%w: no issue has this id", ErrNotFound)
	}
	added := s.addComment(&Comment{
		Body:      body,
		CreatedAt: s.now().UTC(),
		Author:    author,
		Issue:     issue,
	})
	s.addedComments = append(s.addedComments, added)
	if len(s.addedComments) > MaxCreated {
		s.forgetComment(s.addedComments[0])
		s.addedComments = slices.Delete(s.addedComments, 0, 1)
	}
	return added, nil
}

// addIssue gives the issue its id and number and puts it first in its repository.
func (s *Store) addIssue(issue *Issue) *Issue {
	repository := issue.Repository.ID
	s.nextIssue++
	s.lastNumber[repository]++
	issue.ID = "I_" + strconv.Itoa(s.nextIssue)
	issue.Number = s.lastNumber[repository]
	s.nodes[issue.ID] = issue
	s.issues[repository] = slices.Insert(s.issues[repository], 0, issue)
	return issue
}

// addComment gives the comment its id and puts it last in its issue.
func (s *Store) addComment(comment *Comment) *Comment {
	s.nextComment++
	comment.ID = "C_" + strconv.Itoa(s.nextComment)
	s.nodes[comment.ID] = comment
	s.comments[comment.Issue.ID] = append(s.comments[comment.Issue.ID], comment)
	return comment
}

func (s *Store) forgetIssue(issue *Issue) {
	for _, comment := range s.comments[issue.ID] {
		delete(s.nodes, comment.ID)
	}
	s.addedComments = slices.DeleteFunc(s.addedComments, func(c *Comment) bool { return c.Issue == issue })
	delete(s.comments, issue.ID)
	delete(s.nodes, issue.ID)
	repository := issue.Repository.ID
	s.issues[repository] = slices.DeleteFunc(s.issues[repository], func(i *Issue) bool { return i == issue })
}

func (s *Store) forgetComment(comment *Comment) {
	delete(s.nodes, comment.ID)
	issue := comment.Issue.ID
	s.comments[issue] = slices.DeleteFunc(s.comments[issue], func(c *Comment) bool { return c == comment })
}

func labelsOf(repository *Repository, names []string) ([]Label, error) {
	if len(names) > MaxIssueLabels {
		return nil, fmt.Errorf("%w: %d labels, and an issue has at most %d", ErrInvalid, len(names), MaxIssueLabels)
	}
	labels := make([]Label, 0, len(names))
	for i, name := range names {
		at := slices.IndexFunc(repository.Labels, func(l Label) bool { return l.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: the repository does not have label %d of the list", ErrNotFound, i+1)
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%w: label %d of the list stands in it twice", ErrInvalid, i+1)
		}
		labels = append(labels, repository.Labels[at])
	}
	return labels, nil
}

func checkText(name, text string, least, most int) error {
	if n := utf8.RuneCountInString(text); n < least || n > most {
		return fmt.Errorf("%w: %s has %d characters and may have %d to %d", ErrInvalid, name, n, least, most)
	}
	return nil
}
