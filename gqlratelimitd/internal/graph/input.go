package graph

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// maxAllocations is how many limits are allocated in one request.
const maxAllocations = 1000

// request is what comes with every change.
func request(ctx context.Context, reason string, ticket, key *string) control.Request {
	return control.Request{Actor: actorOf(ctx), Reason: reason, Ticket: value(ticket), ID: idOf(ctx), Key: value(key)}
}

var modes = map[model.Mode]bucket.Mode{
	model.ModeEnforce: bucket.Enforce, model.ModeWarn: bucket.Warn, model.ModeShadow: bucket.Shadow, model.ModeOff: bucket.Off,
}

var levels = map[model.Level]bucket.Level{
	model.LevelTenant: bucket.Tenant, model.LevelTeam: bucket.Team, model.LevelUser: bucket.User, model.LevelOperation: bucket.Operation,
}

// scopeIn reads a scope.
func scopeIn(s model.Scope) control.Scope { return control.Scope(strings.ToLower(string(s))) }

func invalid(field, problem string) error {
	return &control.InvalidError{Field: field, Problem: problem}
}

// allOrNamed returns an error for an empty name: who means all tenants names none.
func allOrNamed(tenant *string) error {
	if tenant != nil && *tenant == "" {
		return invalid("tenant", "it is empty: leave it out for all tenants")
	}
	return nil
}

// signedIn reads a signature.
func signedIn(in *model.SignedInput) (*control.Signed, error) {
	if in == nil {
		return nil, nil
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(in.Signature)
	if err != nil {
		return nil, invalid("signed.signature", "it is no base64")
	}
	return &control.Signed{Author: in.Author, Published: in.Published, Signature: signature}, nil
}

// ownerIn reads an owner: nil is the tenant itself.
func ownerIn(in *model.OwnerInput) bucket.Owner {
	if in == nil {
		return bucket.Owner{}
	}
	return bucket.Owner{Level: levels[in.Level], Name: in.Name, Part: in.Part}
}

// positive reads a number that changes something where it is given.
func positive(field string, n *int64) (int64, error) {
	if n != nil && *n < 1 {
		return 0, invalid(field, "at least 1 fits; leave it out to change nothing")
	}
	return value(n), nil
}

// overrideIn reads an override.
func overrideIn(in *model.SetOverrideInput) (o bucket.Override, err error) {
	o = bucket.Override{
		Owner: ownerIn(in.Owner), Limit: value(in.Limit), Unlimited: in.Unlimited, Blocked: in.Blocked, Expires: value(in.Expires),
	}
	if in.Mode != nil {
		mode := modes[*in.Mode]
		o.Mode = &mode
	}
	if o.Capacity, err = positive("capacity", in.Capacity); err != nil {
		return o, err
	}
	if o.Refill, err = positive("refill", in.Refill); err != nil {
		return o, err
	}
	ms, err := positive("periodMs", in.PeriodMs)
	if err == nil && ms > math.MaxInt64/int64(time.Millisecond) {
		err = invalid("periodMs", "it is too long")
	}
	o.Period = time.Duration(ms) * time.Millisecond
	return o, err
}

// allocationsIn reads allocations. Nil is none.
func allocationsIn(list []*model.AllocationInput) (*tiers.Allocations, error) {
	if len(list) > maxAllocations {
		return nil, invalid("allocations", fmt.Sprintf("they are %d, at most %d fit", len(list), maxAllocations))
	}
	if len(list) == 0 {
		return nil, nil
	}
	a := &tiers.Allocations{Teams: map[string]map[string]*tiers.Limit{}, Users: map[string]map[string]*tiers.Limit{}}
	for i, in := range list {
		field := fmt.Sprintf("allocations[%d]", i)
		owners := a.Teams
		switch in.Level {
		case model.LevelTeam:
		case model.LevelUser:
			owners = a.Users
		default:
			return nil, invalid(field+".level", "TEAM or USER fits")
		}
		limit := &tiers.Limit{
			Unit: value(in.Unit), Capacity: in.Capacity, Refill: value(in.Refill), Window: value(in.Window),
			AnchorDay: int64(value(in.AnchorDay)), AnchorMonth: int64(value(in.AnchorMonth)), Zone: value(in.Zone),
		}
		if err := limit.Per.UnmarshalText([]byte(in.Per)); err != nil {
			return nil, invalid(field+".per", err.Error())
		}
		if owners[in.Owner] == nil {
			owners[in.Owner] = map[string]*tiers.Limit{}
		}
		if owners[in.Owner][in.Limit] != nil {
			return nil, invalid(field, "the same owner has a limit of this name already")
		}
		owners[in.Owner][in.Limit] = limit
	}
	return a, nil
}

// tokenIn reads a request for a token.
func tokenIn(in *model.IssueTokenInput) (access.TokenRequest, error) {
	request := access.TokenRequest{Subject: in.Subject, Tenants: in.Tenants}
	for _, role := range in.Roles {
		request.Roles = append(request.Roles, access.Role(strings.ReplaceAll(strings.ToLower(string(role)), "_", "-")))
	}
	seconds, err := positive("lifeSeconds", in.LifeSeconds)
	if err == nil && seconds > int64(access.MaxTokenLife/time.Second) {
		err = invalid("lifeSeconds", fmt.Sprintf("at most %d fit", access.MaxTokenLife/time.Second))
	}
	request.Life = time.Duration(seconds) * time.Second
	return request, err
}
