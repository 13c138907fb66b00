package ratelimitclient

// Problem is the problem details object of a refusal (RFC 9457), in the extensions of its error. Servers
// send it if they are asked to.
type Problem struct {
	// Type names the kind of problem: a URI that the draft of the RateLimit headers registers for a used up
	// budget and for a server that cannot judge, and about:blank for all others.
	Type string `json:"type"`
	// Title is the same for a person, whatever the request.
	Title string `json:"title"`
	// Status is the HTTP status of the answer. It is zero if the server answers the refusal with that of a
	// success.
	Status int `json:"status,omitempty"`
	// Detail is the message of the error.
	Detail string `json:"detail"`
	// ViolatedPolicies are the limits that refused, under the names that they have in RateLimit-Policy.
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
}
