package graph

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

var states = map[model.InstanceState]policy.State{
	model.InstanceStateCurrent: policy.Current, model.InstanceStateStale: policy.Stale, model.InstanceStateNever: policy.Never,
}

// Fleet returns what instances say of themselves.
func (q query) Fleet(ctx context.Context, only *model.FleetFilter, first int, after *string) (*model.Fleet, error) {
	if err := checkFirst(first); err != nil {
		return nil, err
	}
	in := control.FleetInput{After: value(after), N: first}
	if only != nil {
		in.Revision, in.Refusing = only.Revision, only.Refusing
		if only.State != nil {
			state := states[*only.State]
			in.State = &state
		}
	}
	found, err := q.control.Fleet(ctx, actorOf(ctx), in)
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	fleet := &model.Fleet{
		Newest: found.Newest, At: found.At, Total: found.Total, Current: found.Current, Stale: found.Stale, Never: found.Never,
		Refusing: found.Refusing, Behind: found.Behind, Unread: found.Unread, Others: found.Others,
		Revisions: []*model.FleetRevision{}, Nodes: []*model.Instance{}, PageInfo: &model.PageInfo{HasNextPage: len(found.Page) > first},
	}
	for _, r := range found.Revisions {
		fleet.Revisions = append(fleet.Revisions, &model.FleetRevision{Revision: r.Revision, Hash: r.Hash.String(), Instances: r.Instances})
	}
	for i := range found.Page[:min(len(found.Page), first)] {
		fleet.Nodes = append(fleet.Nodes, instanceOf(&found.Page[i]))
	}
	return fleet, nil
}

func instanceOf(i *policy.Instance) *model.Instance {
	s := &i.Status
	is := &model.Instance{
		Name: i.Name, Seen: i.Seen, State: word[model.InstanceState](s.State.String()), Revision: s.Number, Hash: s.Hash.String(),
		Since: instant(s.Changed), Asked: instant(s.Asked), Failure: given(s.Failure), Unsaved: given(s.Unsaved),
	}
	if r := s.Refused; r != nil {
		is.Refused = &model.RefusedRevision{Revision: r.Number, Hash: r.Hash.String(), Cause: string(r.Cause), Error: r.Error, Since: instant(r.At)}
	}
	return is
}

// Relay returns how far changes have come on their way to Redis.
func (q query) Relay(ctx context.Context) (*model.Relay, error) {
	found, err := q.control.Relaying(ctx, actorOf(ctx))
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	return shown(found, err, func(r *control.Relaying) *model.Relay {
		relay := &model.Relay{
			Leads: r.Leads, Holder: given(r.Holder), Waiting: r.Waiting, LagMs: r.Lag.Milliseconds(), Failure: given(r.Failure),
			FailingSince: instant(r.FailingSince), Swept: instant(r.Swept), Refused: []*model.RelayRefusal{},
			Unmanaged: r.Unmanaged, UnmanagedSwitches: r.UnmanagedSwitches, Unnamed: r.Unnamed,
		}
		for _, x := range r.Refused {
			relay.Refused = append(relay.Refused, &model.RelayRefusal{Kind: x.Kind, Name: x.Name, Error: x.Error, Since: x.Since})
		}
		return relay
	})
}
