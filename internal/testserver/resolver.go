// Package testserver is the gqlgen server that the tests of this repository drive. Its resolvers
// count their calls, so that a test can say what ran.
package testserver

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// Resolver answers every field from nothing but its arguments.
type Resolver struct {
	// Created counts the calls of the mutations.
	Created atomic.Int64
	// Asked counts the calls of the root fields of queries.
	Asked atomic.Int64
	// BeforeCreate runs in each mutation before it answers. Nil does nothing.
	BeforeCreate func(context.Context)
	// OnExport runs in Query.export. Nil does nothing.
	OnExport func(ctx context.Context, rows int) error
	// Tick yields the next event of Subscription.ticks. Nil sends the numbers at once.
	Tick <-chan int
}

var errAsked = errors.New("this field always fails")

// Query returns the resolvers of the query type.
func (r *Resolver) Query() QueryResolver { return queryResolver{r} }

// Mutation returns the resolvers of the mutation type.
func (r *Resolver) Mutation() MutationResolver { return mutationResolver{r} }

// Subscription returns the resolvers of the subscription type.
func (r *Resolver) Subscription() SubscriptionResolver { return subscriptionResolver{r} }

// User returns the resolvers of the user type.
func (r *Resolver) User() UserResolver { return userResolver{} }

type queryResolver struct{ *Resolver }

func (r queryResolver) Me(context.Context) (*User, error) {
	r.Asked.Add(1)
	return &User{ID: "1", Name: "Ada"}, nil
}

func (queryResolver) RateLimit(ctx context.Context) (*ratelimitclient.Budget, error) {
	return ratelimit.BudgetFromContext(ctx), nil
}

func (r queryResolver) Users(_ context.Context, first *int) ([]*User, error) {
	r.Asked.Add(1)
	return someUsers(first), nil
}

func (r queryResolver) Page(_ context.Context, first, last *int) ([]*User, error) {
	r.Asked.Add(1)
	if first == nil {
		first = last
	}
	return someUsers(first), nil
}

func (r queryResolver) Matrix(_ context.Context, origins, destinations []string) (int, error) {
	r.Asked.Add(1)
	return len(origins) * len(destinations), nil
}

func (r queryResolver) Export(ctx context.Context, rows int) (bool, error) {
	r.Asked.Add(1)
	if r.OnExport != nil {
		if err := r.OnExport(ctx, rows); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r queryResolver) Fails(context.Context) (*string, error) {
	r.Asked.Add(1)
	return nil, errAsked
}

func (r queryResolver) Search(_ context.Context, first int) ([]Hit, error) {
	r.Asked.Add(1)
	users := someUsers(&first)
	hits := make([]Hit, len(users))
	for i, user := range users {
		hits[i] = user
		if i%2 == 1 {
			hits[i] = &Repository{ID: user.ID, Name: "repository " + user.ID}
		}
	}
	return hits, nil
}

type mutationResolver struct{ *Resolver }

func (r mutationResolver) CreateUser(ctx context.Context, input NewUser) (*User, error) {
	return r.create(ctx, input.Name), nil
}

func (r mutationResolver) CreateAndFail(ctx context.Context, name string) (*User, error) {
	r.create(ctx, name)
	return nil, errAsked
}

func (r mutationResolver) Attach(_ context.Context, files []*graphql.Upload) (int, error) {
	r.Created.Add(1)
	return len(files), nil
}

func (r mutationResolver) create(ctx context.Context, name string) *User {
	if r.BeforeCreate != nil {
		r.BeforeCreate(ctx)
	}
	return &User{ID: strconv.FormatInt(r.Created.Add(1), 10), Name: name}
}

type subscriptionResolver struct{ *Resolver }

func (r subscriptionResolver) Ticks(ctx context.Context, count int) (<-chan int, error) {
	r.Asked.Add(1)
	events := make(chan int)
	go func() {
		defer close(events)
		for i := range count {
			if r.Tick != nil {
				select {
				case <-r.Tick:
				case <-ctx.Done():
					return
				}
			}
			select {
			case events <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events, nil
}

type userResolver struct{}

func (userResolver) Friends(_ context.Context, _ *User, first int) ([]*User, error) {
	return someUsers(&first), nil
}

// maxUsers bounds a list whatever its argument says.
const maxUsers = 100

func someUsers(first *int) []*User {
	n := 10
	if first != nil {
		n = max(0, min(*first, maxUsers))
	}
	users := make([]*User, n)
	for i := range users {
		users[i] = &User{ID: strconv.Itoa(i + 1), Name: "user " + strconv.Itoa(i+1)}
	}
	return users
}
