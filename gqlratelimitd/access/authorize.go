package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrDenied is what every [*DeniedError] is.
var ErrDenied = errors.New("access: denied")

// DeniedError says that an actor may not do what was asked, and who may. It names no tenant and no actor.
type DeniedError struct {
	// Action is what was asked for.
	Action Action
	// Roles are those that would do. None: nobody may.
	Roles []Role
	// Confined: one of the roles is the actor's, but this is about no tenant of theirs, or takes an actor who is confined to none.
	Confined bool
}

// Error says who may.
func (e *DeniedError) Error() string {
	switch {
	case e.Confined:
		return fmt.Sprintf("access: denied: %s outside the tenants that the actor is confined to", e.Action)
	case len(e.Roles) == 0:
		return "access: denied: nobody may do this by request"
	}
	names := make([]string, len(e.Roles))
	for i, role := range e.Roles {
		names[i] = string(role)
	}
	return fmt.Sprintf("access: denied: %s takes the role %s", e.Action, strings.Join(names, " or "))
}

// Is reports whether the target is [ErrDenied].
func (*DeniedError) Is(target error) bool { return target == ErrDenied }

// Authorize returns nil if the actor may do the action to the tenant, and otherwise a [*DeniedError]. Where an action is about
// tenants, an empty tenant means all of them; where it is not, the tenant says nothing. It is safe for concurrent use.
//
// Everything is denied that the table of rights does not allow: to an actor without roles, with roles that there are not, or
// for an action that there is not.
func Authorize(actor Actor, action Action, tenant string) error {
	r, ok := rowOf[action]
	if !ok {
		return &DeniedError{Action: action}
	}
	switch actor.Method {
	case MethodSystem:
		if r.system {
			return nil
		}
	case MethodBootstrap:
		if action == IssueToken {
			return nil
		}
	case MethodToken, MethodOIDC:
		return r.allows(actor, tenant)
	}
	return &DeniedError{Action: action, Roles: from(r.least)}
}

// allows says whether a person or program may.
func (r *row) allows(actor Actor, about string) error {
	least := r.least
	inside := r.own != "" && about != "" && slices.Contains(actor.Tenants, about)
	if inside {
		least = r.own
	}
	denied := &DeniedError{Action: r.action, Roles: from(least)}
	for _, role := range actor.Roles {
		if !slices.Contains(denied.Roles, role) {
			continue
		}
		if inside || !actor.Confined() {
			return nil
		}
		denied.Confined = true
	}
	return denied
}

// AuthorizeIssue returns nil if the actor may issue a token with these roles that is confined to these tenants: nobody gives
// rights that they do not have. The bootstrap token gives any. The error is a [*DeniedError], also where there is no such role.
func AuthorizeIssue(actor Actor, roles []Role, tenants []string) error {
	if err := Authorize(actor, IssueToken, first(tenants)); err != nil {
		return err
	}
	if len(roles) == 0 || len(tenants) > MaxTenants || slices.Contains(tenants, "") {
		return &DeniedError{Action: IssueToken}
	}
	for _, role := range roles {
		if !role.Valid() {
			return &DeniedError{Action: IssueToken}
		}
		if actor.Method != MethodBootstrap && !gives(actor, role, tenants) {
			return &DeniedError{Action: IssueToken, Roles: []Role{role}, Confined: actor.Confined() && actor.Has(role)}
		}
	}
	return nil
}

// AuthorizeRevoke returns nil if the actor may end the token, and otherwise a [*DeniedError]. Everybody may end the token that they come with, those
// that were issued with it, and those of their own person; the person of somebody else's token ends nothing by it. All other tokens take
// [RevokeToken] for each tenant of theirs, and each right that they have: all end with a token that were issued with it, and none of these has more.
// Who is confined ends no token that is not confined to some of the same tenants, whoever has issued it.
func AuthorizeRevoke(actor Actor, token *Token) error {
	own := actor.Token != "" && (actor.Token == token.ID || actor.Token == token.Parent) || actor.AnswersFor(token)
	if own && actor.Method != MethodBootstrap && actor.covers(token.Tenants) {
		return nil
	}
	for _, role := range token.Roles {
		if actor.Method != MethodBootstrap && !gives(actor, role, token.Tenants) {
			return &DeniedError{Action: RevokeToken, Roles: []Role{role}, Confined: actor.Confined() && actor.Has(role)}
		}
	}
	if len(token.Tenants) == 0 {
		return Authorize(actor, RevokeToken, "")
	}
	for _, tenant := range token.Tenants {
		if err := Authorize(actor, RevokeToken, tenant); err != nil {
			return err
		}
	}
	return nil
}

// covers says whether the actor is confined to none, or to all of these tenants, of which there are some.
func (a *Actor) covers(tenants []string) bool {
	if !a.Confined() {
		return true
	}
	outside := func(tenant string) bool { return !slices.Contains(a.Tenants, tenant) }
	return len(tenants) > 0 && !slices.ContainsFunc(tenants, outside)
}

// gives says whether the actor has all rights of a role that is confined to the tenants.
func gives(actor Actor, role Role, tenants []string) bool {
	token := Actor{Method: MethodToken, Roles: []Role{role}, Tenants: tenants}
	about := tenants
	if len(tenants) == 0 {
		about = []string{""}
	}
	for _, r := range rights {
		for _, t := range about {
			if r.allows(token, t) == nil && r.allows(actor, t) != nil {
				return false
			}
		}
	}
	return true
}

// first returns the first tenant, or all.
func first(tenants []string) string {
	if len(tenants) == 0 {
		return ""
	}
	return tenants[0]
}
