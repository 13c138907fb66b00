package resolver

import (
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/model"
)

func repositoryConnection(page codehost.Page[*codehost.Repository]) *model.RepositoryConnection {
	connection := &model.RepositoryConnection{
		TotalCount: page.Total,
		Nodes:      page.Items,
		Edges:      make([]*model.RepositoryEdge, 0, len(page.Items)),
		PageInfo:   pageInfo(page),
	}
	for _, repository := range page.Items {
		connection.Edges = append(connection.Edges, &model.RepositoryEdge{Cursor: repository.ID, Node: repository})
	}
	return connection
}

func issueConnection(page codehost.Page[*codehost.Issue]) *model.IssueConnection {
	connection := &model.IssueConnection{
		TotalCount: page.Total,
		Nodes:      page.Items,
		Edges:      make([]*model.IssueEdge, 0, len(page.Items)),
		PageInfo:   pageInfo(page),
	}
	for _, issue := range page.Items {
		connection.Edges = append(connection.Edges, &model.IssueEdge{Cursor: issue.ID, Node: issue})
	}
	return connection
}

func commentConnection(page codehost.Page[*codehost.Comment]) *model.CommentConnection {
	connection := &model.CommentConnection{
		TotalCount: page.Total,
		Nodes:      page.Items,
		Edges:      make([]*model.CommentEdge, 0, len(page.Items)),
		PageInfo:   pageInfo(page),
	}
	for _, comment := range page.Items {
		connection.Edges = append(connection.Edges, &model.CommentEdge{Cursor: comment.ID, Node: comment})
	}
	return connection
}

// pageInfo says where the page ends. A cursor is the id of an item.
func pageInfo[T codehost.Node](page codehost.Page[T]) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: page.HasNext}
	if n := len(page.Items); n > 0 {
		last := page.Items[n-1].NodeID()
		info.EndCursor = &last
	}
	return info
}
