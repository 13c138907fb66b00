package policies

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/daemon"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const proposalsHelp = `
Usage: gqlratelimit policy proposals [flags] [ID]

Lists the policies that wait for a second person, or are approved and not published yet. With the
number of one it says who has proposed it, why, how far it reaches, what it changes, and how it is
approved. -write FILE writes its document, byte for byte.

The exit code is 1 if there is no proposal of that number.

Examples:

    gqlratelimit policy proposals
    gqlratelimit policy proposals -write proposed.yaml 7
`

// proposalsJSON is the JSON of proposals, without a number.
type proposalsJSON struct {
	Version   int               `json:"version"`
	Proposals []daemon.Proposal `json:"proposals"`
}

// proposalJSON is that of one proposal.
type proposalJSON struct {
	Version  int              `json:"version"`
	Proposal *daemon.Proposal `json:"proposal"`
}

// waits reports whether something can still become of a proposal.
func waits(p *daemon.Proposal) bool { return p.State == "OPEN" || p.State == "APPROVED" }

func proposals(c cli.Console, args []string) error {
	var asks daemon.Flags
	flags := c.NewFlags("policy proposals", proposalsHelp)
	asks.Register(flags)
	all := flags.Bool("all", false, "also those that have ended, of the newest hundred")
	into := flags.String("write", "", "write the document of the proposal into this `file`")
	asJSON := flags.Bool("json", false, "write JSON (docs/reference/command.md describes the format)")
	ids, err := cli.Parse(flags, args)
	if err != nil {
		return err
	}
	if len(ids) == 0 && *into != "" {
		return cli.Usagef("say which proposal: gqlratelimit policy proposals -write FILE ID")
	}
	client, err := asks.Open(c)
	if err != nil {
		return err
	}
	defer client.Close()
	if len(ids) > 0 {
		return one(c, client, ids, *into, *asJSON)
	}
	found, err := client.Proposals()
	if err != nil {
		return err
	}
	out := proposalsJSON{Version: session.FormatVersion, Proposals: []daemon.Proposal{}}
	for i := range found {
		if *all || waits(&found[i]) {
			out.Proposals = append(out.Proposals, found[i])
		}
	}
	if *asJSON {
		return c.WriteJSON(out)
	}
	writeList(c, out.Proposals)
	return nil
}

func writeList(c cli.Console, list []daemon.Proposal) {
	if len(list) == 0 {
		fmt.Fprintln(c.Stdout, "No policy waits for a second person.")
		return
	}
	rows := [][]string{{"PROPOSAL", "STATE", "ON", "ENDS", "BY", "REASON"}}
	for i := range list {
		p := &list[i]
		rows = append(rows, []string{
			strconv.FormatUint(p.ID, 10), strings.ToLower(p.State), fmt.Sprintf("revision %d", p.Expected), p.Expires.UTC().Format(time.RFC3339), p.Proposer, p.Reason,
		})
	}
	cli.WriteTable(c.Stdout, rows)
}

// proposalOf reads the proposal whose number is the only argument. It has said so if there is none.
func proposalOf(c cli.Console, client *daemon.Client, ids []string) (*daemon.Proposal, error) {
	if len(ids) != 1 {
		return nil, cli.Usagef("name one proposal by its number: gqlratelimit policy proposals lists them")
	}
	id, err := strconv.ParseUint(ids[0], 10, 53)
	if err != nil {
		return nil, cli.Usagef("%q is no number of a proposal: gqlratelimit policy proposals lists them", ids[0])
	}
	p, err := client.Proposal(id)
	if err == nil && p == nil {
		fmt.Fprintf(c.Stderr, "There is no proposal %d: gqlratelimit policy proposals -all lists those that there were.\n", id)
		err = cli.ErrFound
	}
	return p, err
}

// one says what a proposal is and what it changes.
func one(c cli.Console, client *daemon.Client, ids []string, into string, asJSON bool) error {
	p, err := proposalOf(c, client, ids)
	if err != nil {
		return err
	}
	if p.Document != "" && policy.HashOf([]byte(p.Document)).String() != p.Hash {
		return fmt.Errorf("the document of proposal %d is not the one of its hash: approve nothing", p.ID)
	}
	if into != "" {
		if p.Document == "" {
			return cli.Usagef("proposal %d is %s, and its document is not kept", p.ID, strings.ToLower(p.State))
		}
		if _, err := write(c, client, into, []byte(p.Document), false); err != nil {
			return err
		}
	}
	if asJSON {
		return c.WriteJSON(proposalJSON{session.FormatVersion, p})
	}
	said := fmt.Sprintf("Proposal %d on revision %d by %s at %s: %s\nIt is %s", p.ID, p.Expected, p.Proposer, p.Proposed.UTC().Format(time.RFC3339), p.Reason, strings.ToLower(p.State))
	if p.Approver != "" {
		said += ", approved by " + p.Approver
	}
	if p.Revision > 0 {
		said += fmt.Sprintf(", as revision %d", p.Revision)
	}
	for _, more := range []string{p.Reach, misfitting(p.Misfits)} {
		if more != "" {
			said += "; " + more
		}
	}
	for line := range strings.SplitSeq(said, "\n") {
		fmt.Fprintln(c.Stdout, cli.Plain(line))
	}
	return writeProposed(c, client, p)
}

func misfitting(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("records of %d tenants would stop fitting", n)
}

// writeProposed says what the document changes, and how it is approved.
func writeProposed(c cli.Console, client *daemon.Client, p *daemon.Proposal) error {
	if p.Document == "" || !waits(p) {
		return nil
	}
	fmt.Fprintln(c.Stdout)
	if p.Expected > 0 {
		base, err := client.Revision(p.Expected)
		if err != nil {
			return err
		}
		writeChanges(c, changesBetween(base, &policy.Revision{Number: p.Expected + 1, Document: []byte(p.Document), Hash: policy.HashOf([]byte(p.Document))}), shownChanges)
	}
	if p.State == "OPEN" {
		fmt.Fprintf(c.Stdout, "\nTo approve exactly this:\n\n    gqlratelimit policy approve -hash %s -reason TEXT %d\n", cli.Plain(p.Hash), p.ID)
	}
	return nil
}

const approveHelp = `
Usage: gqlratelimit policy approve -reason TEXT -hash HASH|-file FILE [flags] ID

Approves a policy that somebody else has proposed: exactly the document of the hash that policy
proposals ID shows, or of a file that you have read. Nothing is published: policy push of the same
file does that, by anybody who may publish.

The exit code is 1 if the proposal has another document, or there is none.

Examples:

    gqlratelimit policy proposals 7
    gqlratelimit policy approve -file policy.yaml -reason "read, ticket 16" 7
`

const withdrawHelp = `
Usage: gqlratelimit policy withdraw -reason TEXT [flags] ID

Ends a proposal: your own is withdrawn, and that of somebody else is rejected, also after it was
approved.

Example:

    gqlratelimit policy withdraw -reason "too strict for acme" 7
`

// verdict is what somebody says about a proposal.
type verdict struct {
	cli.Console

	daemon     daemon.Flags
	hash, file string
	change     daemon.Change
	json       bool
}

func approve(c cli.Console, args []string) error {
	return judge(c, "policy approve", approveHelp, args)
}

func withdraw(c cli.Console, args []string) error {
	return judge(c, "policy withdraw", withdrawHelp, args)
}

// judge approves a proposal or ends it.
func judge(c cli.Console, name, help string, args []string) error {
	v := &verdict{Console: c}
	approves := help == approveHelp
	flags := c.NewFlags(name, help)
	v.daemon.Register(flags)
	flags.StringVar(&v.change.Reason, "reason", "", "why, in a `text` for those who find it later; required, and asked for on a terminal")
	flags.StringVar(&v.change.Ticket, "ticket", "", "where more is to be read: a `name` in the audit log")
	if approves {
		flags.StringVar(&v.hash, "hash", "", "the `hash` of the document that you have read")
		flags.StringVar(&v.file, "file", "", "the `file` that you have read, which has to be the document")
	}
	flags.BoolVar(&v.json, "json", false, "write JSON (docs/reference/command.md describes the format)")
	ids, err := cli.Parse(flags, args)
	if err != nil {
		return err
	}
	if approves && (v.hash == "") == (v.file == "") {
		return cli.Usagef("say what you have read: -hash HASH, which policy proposals ID shows, or -file FILE")
	}
	if v.change.Reason, err = reasonOf(c, v.change.Reason); err != nil {
		return err
	}
	client, err := v.daemon.Open(c)
	if err != nil {
		return err
	}
	defer client.Close()
	p, err := proposalOf(c, client, ids)
	if err != nil {
		return err
	}
	v.change.Key = "judge-" + rand.Text()
	if approves {
		p, err = v.approve(client, p)
	} else {
		p, err = client.Withdraw(p.ID, &v.change)
	}
	switch {
	case err != nil:
		return err
	case v.json:
		return c.WriteJSON(proposalJSON{session.FormatVersion, p})
	}
	fmt.Fprintf(c.Stdout, "Proposal %d is %s.%s\n", p.ID, cli.Plain(strings.ToLower(p.State)), map[bool]string{true: " Whoever may publish pushes the same file now."}[approves])
	return nil
}

// approve approves what was read, and nothing else.
func (v *verdict) approve(client *daemon.Client, p *daemon.Proposal) (*daemon.Proposal, error) {
	read := v.hash
	if v.file != "" {
		text, err := session.ReadFile(v.file, tiers.MaxDocument)
		if err != nil {
			return nil, err
		}
		read = policy.HashOf(text).String()
	}
	if read != p.Hash {
		fmt.Fprintf(v.Stderr, "Proposal %d is another document than %s, and was not approved: gqlratelimit policy proposals %d shows it.\n", p.ID, cli.Plain(cmp.Or(v.file, v.hash)), p.ID)
		return nil, cli.ErrFound
	}
	return client.Approve(p, &v.change)
}
