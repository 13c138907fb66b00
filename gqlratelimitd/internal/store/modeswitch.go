package store

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ModeSwitch is which mode is the strictest one for a time.
type ModeSwitch struct {
	// Scope is what it is about, in a word, and Name which one of these. Together they are its key.
	Scope, Name string
	// Mode is the strictest mode.
	Mode bucket.Mode
	// Ended says that it was, by hand.
	Ended bool
	// Until is when it ends by itself.
	Until time.Time
	Written
}

// Holds reports whether it is there at a time: neither ended by hand nor by itself.
func (s *ModeSwitch) Holds(now time.Time) bool {
	return s != nil && !s.Ended && now.Before(s.Until)
}

const switchColumns = "scope, name, mode, until, revision, author, reason, at"

func scanSwitch(row scanner, s *ModeSwitch) error {
	var mode string
	err := row.Scan(&s.Scope, &s.Name, &mode, instant{&s.Until}, &s.Revision, &s.By, &s.Reason, instant{&s.At})
	if s.Ended = mode == ""; err != nil || s.Ended {
		return err
	}
	s.Mode, err = number("mode", mode, bucket.Off)
	return err
}

// ModeSwitch returns a switch, nil if it was never set. It may be one that has ended, see [ModeSwitch.Holds].
func (v *View) ModeSwitch(scope, name string) (*ModeSwitch, error) {
	return one(v, scanSwitch, "SELECT "+switchColumns+" FROM mode_switch WHERE scope = $1 AND name = $2", scope, []byte(name))
}

// ModeSwitches returns at most n switches, those that have ended included, after a revision and in the order of that.
func (v *View) ModeSwitches(after uint64, n int) ([]ModeSwitch, error) {
	return many(v, scanSwitch, "SELECT "+switchColumns+" FROM mode_switch WHERE revision > $1 ORDER BY revision LIMIT $2", after, page(n))
}

// PutModeSwitch sets or ends a switch if the revision of what holds is the expected one, 0 for none, and otherwise returns a
// [*ConflictError]. It sets when and under which revision.
func (tx *Tx) PutModeSwitch(s *ModeSwitch, expected uint64) error {
	there, err := tx.ModeSwitch(s.Scope, s.Name)
	if err != nil {
		return err
	}
	var was *Written
	if there.Holds(tx.now) {
		was = &there.Written
	}
	written, err := tx.write(was, expected, s.By, s.Reason)
	if err != nil {
		return err
	}
	s.Written = written
	mode := s.Mode.String()
	if s.Ended {
		mode = ""
	}
	return tx.exec(`INSERT INTO mode_switch (`+switchColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (scope, name) DO UPDATE SET mode = excluded.mode, until = excluded.until,
		revision = excluded.revision, author = excluded.author, reason = excluded.reason, at = excluded.at`,
		s.Scope, []byte(s.Name), mode, micros(s.Until), s.Revision, s.By, s.Reason, micros(s.At))
}
