package resolver

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/account"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/model"
)

func (r queryResolver) Viewer(ctx context.Context) (*codehost.User, error) {
	return r.viewer(ctx), nil
}

func (r queryResolver) Node(_ context.Context, id string) (codehost.Node, error) {
	return r.Store.Node(id), nil
}

func (r queryResolver) Repository(_ context.Context, owner, name string) (*codehost.Repository, error) {
	return r.Store.Repository(owner, name), nil
}

func (r queryResolver) Repositories(
	_ context.Context, first int, after *string,
) (*model.RepositoryConnection, error) {
	page, err := r.Store.Repositories(nil, pageRequest(first, after))
	return repositoryConnection(page), err
}

func (r queryResolver) Search(_ context.Context, query string, first int) ([]codehost.SearchResult, error) {
	return r.Store.Search(query, first)
}

func (r userResolver) Repositories(
	_ context.Context, user *codehost.User, first int, after *string,
) (*model.RepositoryConnection, error) {
	page, err := r.Store.Repositories(user, pageRequest(first, after))
	return repositoryConnection(page), err
}

func (r repositoryResolver) Issues(
	_ context.Context, repository *codehost.Repository, first int, after *string, state *codehost.IssueState,
) (*model.IssueConnection, error) {
	var wanted codehost.IssueState
	if state != nil {
		wanted = *state
	}
	page, err := r.Store.Issues(repository, wanted, pageRequest(first, after))
	return issueConnection(page), err
}

func (r issueResolver) Comments(
	_ context.Context, issue *codehost.Issue, first int, after *string,
) (*model.CommentConnection, error) {
	page, err := r.Store.Comments(issue, pageRequest(first, after))
	return commentConnection(page), err
}

// viewer returns the user behind the API key, or nil.
func (r *Resolver) viewer(ctx context.Context) *codehost.User {
	caller, ok := account.FromContext(ctx)
	if !ok {
		return nil
	}
	return r.Store.UserByLogin(caller.Login)
}

func pageRequest(first int, after *string) codehost.PageRequest {
	request := codehost.PageRequest{First: first}
	if after != nil {
		request.After = *after
	}
	return request
}
