// Package resolver answers the fields of the example's schema. It knows nothing of rate limits.
package resolver

import (
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/generated"
)

// Resolver answers all fields from one store. It is safe for concurrent use.
type Resolver struct {
	Store *codehost.Store
}

var _ generated.ResolverRoot = (*Resolver)(nil)

type (
	queryResolver        struct{ *Resolver }
	mutationResolver     struct{ *Resolver }
	subscriptionResolver struct{ *Resolver }
	userResolver         struct{ *Resolver }
	repositoryResolver   struct{ *Resolver }
	issueResolver        struct{ *Resolver }
)

// Query returns the resolver of the query type.
func (r *Resolver) Query() generated.QueryResolver { return queryResolver{r} }

// Mutation returns the resolver of the mutation type.
func (r *Resolver) Mutation() generated.MutationResolver { return mutationResolver{r} }

// Subscription returns the resolver of the subscription type.
func (r *Resolver) Subscription() generated.SubscriptionResolver { return subscriptionResolver{r} }

// User returns the resolver of the fields that a user does not hold.
func (r *Resolver) User() generated.UserResolver { return userResolver{r} }

// Repository returns the resolver of the fields that a repository does not hold.
func (r *Resolver) Repository() generated.RepositoryResolver { return repositoryResolver{r} }

// Issue returns the resolver of the fields that an issue does not hold.
func (r *Resolver) Issue() generated.IssueResolver { return issueResolver{r} }
