package claims

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// keyExtension is where an operation may carry its key, on every transport.
const keyExtension = "idempotencyKey"

var (
	errKeyMissing = fmt.Errorf("%w: a mutation needs one, and there is none; a UUID fits", idempotency.ErrKeyInvalid)
	errUploadKey  = fmt.Errorf("%w: it cannot be used with file uploads", idempotency.ErrKeyInvalid)
)

// Claim returns the claim that an operation asks for, nil if it has no key. A subscription and an anonymous subject have
// none: the first has no single answer, and the second cannot be told from others behind the same address. The error
// matches [idempotency.ErrKeyInvalid].
func (k *Keeper) Claim(opCtx *graphql.OperationContext, subject tiers.Subject, webSocket bool) (*idempotency.Claim, error) {
	key, found, err := k.key(opCtx.Headers, opCtx.Extensions, webSocket)
	kind := opCtx.Operation.Operation
	if err != nil || subject.Anonymous || kind == ast.Subscription {
		return nil, err
	}
	if !found && (!k.cfg.Required || kind != ast.Mutation) {
		return nil, nil
	}
	uploads := hasUpload(reflect.ValueOf(opCtx.Variables), 0)
	switch {
	case !found && uploads:
		return nil, nil
	case !found:
		return nil, errKeyMissing
	case uploads:
		return nil, errUploadKey
	}
	fingerprint, err := idempotency.NewFingerprint(opCtx.RawQuery, opCtx.Operation.Name,
		coerced(k.cfg.Schema, opCtx.Operation, opCtx.Variables))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", idempotency.ErrKeyInvalid, err)
	}
	claim := &idempotency.Claim{
		Subject:     nameOf(subject),
		Key:         key,
		Fingerprint: fingerprint,
		Attempt:     idempotency.NewAttemptID(),
		Lease:       k.cfg.Lease,
		TTL:         k.cfg.MutationTTL,
		ReuseAsNew:  k.cfg.ReuseAsNew,
	}
	if kind == ast.Query {
		claim.TTL, claim.RunAgain = k.cfg.QueryTTL, true
	} else {
		claim.RefuseAbandoned = k.cfg.RefuseAbandoned
	}
	return claim, nil
}

// Carries says whether an operation of which nothing is read but its parameters carries anything in the place of a key.
func (k *Keeper) Carries(headers http.Header, extensions map[string]any, webSocket bool) bool {
	if _, found := extensions[keyExtension]; found || webSocket {
		return found
	}
	return slices.ContainsFunc(k.cfg.Headers, func(name string) bool { return len(headers.Values(name)) > 0 })
}

// key returns the key of an operation, which its headers and its extensions may carry. The headers of a WebSocket belong to the
// connection, and carry none.
func (k *Keeper) key(headers http.Header, extensions map[string]any, webSocket bool) (key idempotency.Key, found bool, err error) {
	key, found, err = keyOfExtensions(extensions)
	if err != nil || webSocket {
		return key, found, err
	}
	other, both, err := keyOfHeaders(headers, k.cfg.Headers)
	switch {
	case err != nil || !both:
		return key, found, err
	case found && other != key:
		return "", false, fmt.Errorf("%w: the headers and extensions.%s give different keys", idempotency.ErrKeyInvalid, keyExtension)
	}
	return other, true, nil
}

// keyOfExtensions returns the key in the extensions of an operation.
func keyOfExtensions(extensions map[string]any) (key idempotency.Key, found bool, err error) {
	value, found := extensions[keyExtension]
	if !found {
		return "", false, nil
	}
	text, isString := value.(string)
	if !isString {
		return "", false, fmt.Errorf("%w: extensions.%s is not a string", idempotency.ErrKeyInvalid, keyExtension)
	}
	key, err = idempotency.ParseKey(text)
	return key, err == nil, err
}

// keyOfHeaders returns the key that all headers give that carry one.
func keyOfHeaders(header http.Header, names []string) (key idempotency.Key, found bool, err error) {
	for _, name := range names {
		values := header.Values(name)
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 {
			return "", false, fmt.Errorf("%w: the header is given %d times", idempotency.ErrKeyInvalid, len(values))
		}
		other, err := idempotency.ParseKey(values[0])
		if err != nil {
			return "", false, err
		}
		if found && other != key {
			return "", false, fmt.Errorf("%w: several headers give different keys", idempotency.ErrKeyInvalid)
		}
		key, found = other, true
	}
	return key, found, nil
}

// nameOf names the owner of a key: two users of one tenant never meet. Each part is preceded by its length, so that no
// two subjects have one name.
func nameOf(s tiers.Subject) string {
	return fmt.Sprintf("%d:%s%d:%s%d:%s", len(s.Tenant), s.Tenant, len(s.Team), s.Team, len(s.User), s.User)
}

// maxUploadDepth is how deep uploads are looked for. What is deeper counts as one.
const maxUploadDepth = 64

var uploadType = reflect.TypeFor[graphql.Upload]()

// hasUpload finds files among the variables. Their content is not part of a fingerprint, so two
// different files would pass for one. Coercion makes slices of many types, hence the reflection.
func hasUpload(value reflect.Value, depth int) bool {
	if depth > maxUploadDepth {
		return true
	}
	switch value.Kind() {
	case reflect.Interface, reflect.Pointer:
		return hasUpload(value.Elem(), depth+1)
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			if hasUpload(entries.Value(), depth+1) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if hasUpload(value.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Struct:
		return value.Type() == uploadType
	default:
	}
	return false
}
