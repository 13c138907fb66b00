package graph

import (
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/generated"
)

// resolver passes on what control says.
type resolver struct{ control *control.Control }

type (
	query      struct{ *resolver }
	mutation   struct{ *resolver }
	tenant     struct{ *resolver }
	auditEntry struct{ *resolver }
)

// Query implements generated.ResolverRoot.
func (r *resolver) Query() generated.QueryResolver { return query{r} }

// Mutation implements generated.ResolverRoot.
func (r *resolver) Mutation() generated.MutationResolver { return mutation{r} }

// Tenant implements generated.ResolverRoot.
func (r *resolver) Tenant() generated.TenantResolver { return tenant{r} }

// AuditEntry implements generated.ResolverRoot.
func (r *resolver) AuditEntry() generated.AuditEntryResolver { return auditEntry{r} }
