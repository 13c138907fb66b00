package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// entries are those of the audit log, the newest first.
func (s *scene) entries() []audit.Entry {
	s.Helper()
	var got struct{ Entries []audit.Entry }
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/audit/entries", s.admin, nil, "")), &got)
	return got.Entries
}

func TestAnExportIsVerifiedWithoutTheService(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	export := s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/audit/export", s.admin, nil, ""))
	report, err := audit.Verify(strings.NewReader(export.body), nil)
	require.NoError(t, err)
	require.EqualValues(t, len(s.entries()), report.Rows)
	forged := strings.Replace(export.body, `"reason":"why"`, `"reason":"who"`, 1)
	require.NotEqual(t, export.body, forged)
	_, err = audit.Verify(strings.NewReader(forged), nil)
	var tampered *audit.TamperError
	require.ErrorAs(t, err, &tampered)
}
