package resolver

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/model"
)

// ErrAnonymous says that only the holder of an API key can do this.
var ErrAnonymous = errors.New("writing needs an API key")

func (r mutationResolver) CreateIssue(
	ctx context.Context, input model.CreateIssueInput,
) (*model.CreateIssuePayload, error) {
	author := r.viewer(ctx)
	if author == nil {
		return nil, ErrAnonymous
	}
	issue, err := r.Store.CreateIssue(author, codehost.NewIssue{
		RepositoryID: input.RepositoryID,
		Title:        input.Title,
		Body:         input.Body,
		Labels:       input.Labels,
	})
	if err != nil {
		return nil, err
	}
	return &model.CreateIssuePayload{Issue: issue}, nil
}

func (r mutationResolver) AddComment(
	ctx context.Context, input model.AddCommentInput,
) (*model.AddCommentPayload, error) {
	author := r.viewer(ctx)
	if author == nil {
		return nil, ErrAnonymous
	}
	comment, err := r.Store.AddComment(author, input.IssueID, input.Body)
	if err != nil {
		return nil, err
	}
	return &model.AddCommentPayload{Comment: comment}, nil
}

func (r subscriptionResolver) IssueCreated(
	ctx context.Context, repositoryID *string, first int,
) (<-chan *codehost.Issue, error) {
	var repository string
	if repositoryID != nil {
		repository = *repositoryID
	}
	return r.Store.IssuesCreated(ctx, repository, first)
}
