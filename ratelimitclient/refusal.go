package ratelimitclient

import (
	"encoding/json"
	"time"
)

// Refusal says why an operation was refused. As JSON it is the extensions of the GraphQL error that
// tells it, without the message, which GraphQL has beside the extensions.
type Refusal struct { //nolint:errname // a client says refusal, as the documentation does
	// Code is one of the Code constants.
	Code string
	// Message is the message of the GraphQL error, written for a person.
	Message string
	// ID names this refusal: an operator finds by it what led to it. It is 26 letters and digits drawn at
	// random, and empty if the server sent none, as it does under a flood of refusals.
	ID string
	// HelpURL is the page on which the operator explains its limits. It is empty if the server sent none.
	HelpURL string
	// Layer is what refused before the budgets were asked: address, key, connection, document or parser. It is empty if
	// the budgets refused. Further words may come.
	Layer string
	// RetryAfter is when the operation can pass. Zero means that waiting does not help, or that the
	// server does not know how long.
	RetryAfter time.Duration
	// Limit is the name of the limit that refused. It is empty if it was not a limit.
	Limit string
	// Level is whose limit it is: tenant, team, user or operation.
	Level string
	// Owner tells owners of one level apart. It is empty at the level of the tenant.
	Owner string
	// Unit is what the limit counts.
	Unit string
	// Cost is what the operation costs in points, where that is the reason. It is zero otherwise.
	Cost int64
	// MaxCost is what one operation may cost in points, where that is the reason. It is zero
	// otherwise.
	MaxCost int64
	// Dearest is the field, such as Query.search, whose calls add most to a price that is too high, and DearestList how many
	// elements the list has that it returns. They are empty and zero otherwise.
	Dearest     string
	DearestList int64
	// Rule is the limit or rule of shape that the operation breaks: depth, introspectionDepth, aliases,
	// rootFields, directives, listNodes, slicingArguments or representations. It is empty if it was not
	// that.
	Rule string
	// Given is what the operation has of what Rule counts, and Allowed what it may have. They are zero
	// without a Rule.
	Given   int64
	Allowed int64
}

// Error returns the message, or the code if the server sent no message.
func (r *Refusal) Error() string {
	if r.Message == "" {
		return "ratelimitclient: refused: " + r.Code
	}
	return r.Message
}

// Temporary returns whether the same request can pass later. Where RetryAfter is zero all the same,
// the client chooses how long it waits.
func (r *Refusal) Temporary() bool {
	return codes[r.Code].temporary
}

// refusalExtensions is the JSON form of a refusal, as it is read.
type refusalExtensions struct {
	Code       string      `json:"code"`
	ID         string      `json:"refusalId,omitempty"`
	HelpURL    string      `json:"helpUrl,omitempty"`
	Layer      string      `json:"layer,omitempty"`
	RetryAfter float64     `json:"retryAfter,omitempty"`
	Limit      string      `json:"limit,omitempty"`
	Level      string      `json:"level,omitempty"`
	Owner      string      `json:"owner,omitempty"`
	Unit       string      `json:"unit,omitempty"`
	Cost       looseAmount `json:"cost,omitempty"`
	MaxCost    looseAmount `json:"maxCost,omitempty"`
	Dearest    string      `json:"dearest,omitempty"`
	List       looseAmount `json:"dearestList,omitempty"`
	Rule       string      `json:"rule,omitempty"`
	Given      looseAmount `json:"given,omitempty"`
	Allowed    looseAmount `json:"allowed,omitempty"`
}

// Extensions returns the extensions of the GraphQL error. What is empty or zero is left out, but for the
// numbers of a rule.
func (r Refusal) Extensions() map[string]any {
	extensions := map[string]any{"code": r.Code}
	if r.RetryAfter > 0 {
		extensions["retryAfter"] = Seconds(r.RetryAfter)
	}
	for key, text := range map[string]string{
		"refusalId": r.ID, "helpUrl": r.HelpURL, "layer": r.Layer, "limit": r.Limit, "level": r.Level, "owner": r.Owner, "unit": r.Unit,
		"rule": r.Rule, "dearest": r.Dearest,
	} {
		if text != "" {
			extensions[key] = text
		}
	}
	for key, n := range map[string]int64{"cost": r.Cost, "maxCost": r.MaxCost, "dearestList": r.DearestList} {
		if n != 0 {
			extensions[key] = n
		}
	}
	if r.Rule != "" {
		extensions["given"], extensions["allowed"] = r.Given, r.Allowed
	}
	return extensions
}

// MarshalJSON writes the extensions of the GraphQL error.
func (r Refusal) MarshalJSON() ([]byte, error) {
	return json.Marshal(r.Extensions())
}

// UnmarshalJSON reads the extensions of the GraphQL error and leaves the message as it is. Costs that
// are no whole numbers become zero.
func (r *Refusal) UnmarshalJSON(data []byte) error {
	var wire refusalExtensions
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*r = wire.refusal(r.Message)
	return nil
}

func (e *refusalExtensions) refusal(message string) Refusal {
	return Refusal{
		Code: e.Code, Message: message, ID: e.ID, HelpURL: e.HelpURL, Layer: e.Layer, RetryAfter: fromSeconds(e.RetryAfter),
		Limit: e.Limit, Level: e.Level, Owner: e.Owner, Unit: e.Unit,
		Cost: int64(e.Cost), MaxCost: int64(e.MaxCost), Dearest: e.Dearest, DearestList: int64(e.List),
		Rule: e.Rule, Given: int64(e.Given), Allowed: int64(e.Allowed),
	}
}
