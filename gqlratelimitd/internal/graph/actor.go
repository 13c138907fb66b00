package graph

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// asking is who asks, and under which id of the request.
type asking struct {
	actor access.Actor
	id    string
}

type askingKey struct{}

// actorOf returns who asks: nobody, who may nothing, outside a request.
func actorOf(ctx context.Context) access.Actor {
	a, _ := ctx.Value(askingKey{}).(asking)
	return a.actor
}

// idOf returns the id of the request, by which lines of the log and entries of the audit log are found.
func idOf(ctx context.Context) string {
	a, _ := ctx.Value(askingKey{}).(asking)
	return a.id
}

// subject says who pays. Tokens that one person has issued share one budget: nobody buys more by issuing more.
func subject(ctx context.Context) (ratelimit.Subject, bool) {
	a, ok := ctx.Value(askingKey{}).(asking)
	return ratelimit.Subject{Tenant: a.actor.Person(), User: a.actor.Subject, Tier: tierOf(&a.actor)}, ok
}

// tierOf is the tier of an actor in policy.yaml.
func tierOf(a *access.Actor) string {
	switch {
	case a.Method == access.MethodBootstrap:
		return "bootstrap"
	case a.Has(access.Operator), a.Has(access.Publisher):
		return "operator"
	default:
		return "reader"
	}
}

// authenticated lets those in of whom it is known who they are.
func authenticated(cfg *Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := asking{id: rand.Text()}
		var err error
		if a.actor, err = cfg.Authenticator.Authenticate(r); err != nil {
			refuse(w, cfg, r, a.id, err)
			return
		}
		if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodPost || media != "application/json" {
			refuseWith(w, http.StatusUnsupportedMediaType, coded(CodeInvalid, "send operations by POST, with Content-Type: application/json"))
			return
		}
		if access.Authorize(a.actor, access.CheckPolicy, "") != nil {
			if r.ContentLength > maxSmallBody {
				refuseWith(w, http.StatusRequestEntityTooLarge, coded(ratelimitclient.CodePayloadTooLarge, fmt.Sprintf("the body may have %d bytes", maxSmallBody)))
				return
			}
			if r.Body != nil {
				r.Body = http.MaxBytesReader(w, r.Body, maxSmallBody)
			}
		}
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askingKey{}, a)))
	})
}

// refuse answers who is not known.
func refuse(w http.ResponseWriter, cfg *Config, r *http.Request, id string, err error) {
	status, code, message := http.StatusInternalServerError, CodeInternal, "the request failed; its id leads to the line of the log"
	var unknown *access.UnauthenticatedError
	if errors.As(err, &unknown) {
		status, code, message = http.StatusUnauthorized, CodeUnauthenticated, unknown.Error()
		switch unknown.Reason {
		case access.ReasonTooMany:
			status = http.StatusTooManyRequests
		case access.ReasonUnavailable:
			// The authenticator says why in its log, now and then: strangers ask as often as they like.
			status, code = http.StatusServiceUnavailable, CodeUnavailable
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="gqlratelimitd"`)
		}
		if unknown.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(int64((unknown.RetryAfter+time.Second-1)/time.Second), 10))
		}
	} else {
		cfg.Logger.ErrorContext(r.Context(), "graph: who asks cannot be found out", "request", id, "error", err)
	}
	refusal := coded(code, message)
	refusal.Extensions["request"] = id
	refuseWith(w, status, refusal)
}

// refuseWith answers with an error and nothing else.
func refuseWith(w http.ResponseWriter, status int, refusal *gqlerror.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	writeResponse(w, &graphql.Response{Errors: gqlerror.List{refusal}})
}
