// Package access says who asks the control plane for something, and whether they may.
//
// An [Actor] is who asks: a person or a program with [Role]s, over all tenants or confined to some. An [Action] is what is
// asked for; there is one for each kind of thing that is done or read. [Authorize] joins the two. The rights stand in one
// table in code, and what has no row in it is denied to everybody.
package access
