// Package compose_test reads compose.yaml as Docker Compose does, and checks what it mounts with the programs that read it. Nothing is started:
// there was no engine for containers where it was written.
package compose_test

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// project is the file as it is, without any variable of the environment.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithResolvedPaths(true))
	require.NoError(t, err)
	p, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return p
}

// pinned is an image with a tag that names a version.
var pinned = regexp.MustCompile(`^[a-z/]+:v?\d+\.\d+[\w.-]*$|^postgres:\d+-[a-z]+$`)

func TestItHasEverythingThatAFleetIsWatchedWith(t *testing.T) {
	t.Parallel()
	p := project(t)
	require.ElementsMatch(t, []string{"redis", "postgres", "prometheus", "grafana", "gqlratelimitd"}, p.ServiceNames())
	for _, s := range p.Services {
		if s.Build == nil {
			require.Regexp(t, pinned, s.Image, s.Name)
		}
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s listens for strangers", s.Name)
		}
		for name, condition := range s.DependsOn {
			if condition.Condition == types.ServiceConditionHealthy {
				require.NotNil(t, p.Services[name].HealthCheck, "%s waits for the health of %s, which nobody checks", s.Name, name)
			}
		}
	}
}

func TestWhatItMountsIsThere(t *testing.T) {
	t.Parallel()
	p, binds := project(t), 0
	for _, s := range p.Services {
		for _, volume := range s.Volumes {
			if volume.Type == types.VolumeTypeVolume {
				require.Contains(t, p.Volumes, volume.Source)
				continue
			}
			binds++
			_, err := os.Stat(volume.Source)
			require.NoError(t, err, s.Name)
			require.True(t, volume.ReadOnly, "%s may write %s", s.Name, volume.Source)
		}
		for _, secret := range s.Secrets {
			require.Contains(t, p.Secrets, secret.Source)
		}
		if s.Build != nil {
			require.FileExists(t, filepath.Join(s.Build.Context, s.Build.Dockerfile))
			require.DirExists(t, filepath.Join(s.Build.Context, "gqlratelimitd"))
		}
	}
	require.Equal(t, 5, binds)
}

func TestNoPasswordStandsInAFile(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, s := range p.Services {
		for name, value := range s.Environment {
			if strings.Contains(name, "PASSWORD") {
				require.True(t, strings.HasSuffix(name, "_FILE"), "%s of %s is no file", name, s.Name)
				require.Contains(t, p.Secrets, filepath.Base(*value))
			}
		}
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	for name, secret := range p.Secrets {
		require.Equal(t, filepath.Join(here, "secrets"), filepath.Dir(secret.File), name)
	}
	ignored, err := os.ReadFile(".gitignore")
	require.NoError(t, err)
	require.Contains(t, string(ignored), "secrets/")
	for _, file := range []string{"compose.yaml", "prometheus.yml", "grafana/datasources.yml"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `(?i)(password|token|secret)\w*: *"?\w{6,}"?$`, string(text), file)
		require.NotRegexp(t, `://[^/@\s]+:[^/@\s]+@`, string(text), file)
	}
}

// secrets runs the script in a copy of the folder, and returns where it has put the secrets.
func secrets(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	script, err := os.ReadFile("secrets.sh")
	require.NoError(t, err)
	path := filepath.Join(folder, "secrets.sh")
	require.NoError(t, os.WriteFile(path, script, 0o600))
	run := func() {
		out, err := exec.CommandContext(t.Context(), "bash", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run()
	first, err := os.ReadFile(filepath.Join(folder, "secrets", "postgres_password"))
	require.NoError(t, err)
	run()
	again, err := os.ReadFile(filepath.Join(folder, "secrets", "postgres_password"))
	require.NoError(t, err)
	require.Equal(t, string(first), string(again), "what is there stays")
	require.Len(t, first, 48)
	return filepath.Join(folder, "secrets")
}

func TestTheScriptMakesEverySecretAndTheDaemonTakesItsConfiguration(t *testing.T) {
	t.Parallel()
	p, folder := project(t), secrets(t)
	for name, secret := range p.Secrets {
		require.FileExists(t, filepath.Join(folder, filepath.Base(secret.File)), name)
	}
	info, err := os.Stat(folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	daemon, config := filepath.Join(t.TempDir(), "gqlratelimitd"), filepath.Join(folder, "gqlratelimitd.yml")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../../gqlratelimitd", "-o", daemon, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), daemon, "-config", config, "-print-sql").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "CREATE TABLE")

	text, err := os.ReadFile(config)
	require.NoError(t, err)
	var options struct{ Listen, Data, Database, Redis string }
	require.NoError(t, yaml.Unmarshal(text, &options))
	for _, address := range []string{options.Database, options.Redis} {
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		require.Contains(t, p.Services, parsed.Hostname())
	}
	service := p.Services["gqlratelimitd"]
	_, port, err := net.SplitHostPort(options.Listen)
	require.NoError(t, err)
	require.Equal(t, port, service.Ports[0].Published)
	require.True(t, slices.ContainsFunc(service.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == options.Data }))
	wrong := strings.Replace(string(text), "plainText: true\n", "", 1)
	require.NoError(t, os.WriteFile(config, []byte(wrong), 0o600))
	require.Error(t, exec.CommandContext(t.Context(), daemon, "-config", config, "-print-sql").Run(), "it would refuse what it does not take")
}

// target is where a service has a file of this folder.
func target(t *testing.T, p *types.Project, service, source string) string {
	t.Helper()
	path, err := filepath.Abs(source)
	require.NoError(t, err)
	for _, v := range p.Services[service].Volumes {
		if v.Source == path {
			return v.Target
		}
	}
	t.Fatalf("%s has not %s", service, source)
	return ""
}

func TestPrometheusTakesItsConfigurationAndTheRules(t *testing.T) {
	t.Parallel()
	p, folder := project(t), t.TempDir()
	config, err := os.ReadFile("prometheus.yml")
	require.NoError(t, err)
	rules, err := os.ReadFile("../../prometheus/rules/ratelimit.rules.yml")
	require.NoError(t, err)
	require.Equal(t, "/etc/prometheus/prometheus.yml", target(t, p, "prometheus", "prometheus.yml"))
	require.Equal(t, "/etc/prometheus/ratelimit.rules.yml", target(t, p, "prometheus", "../../prometheus/rules/ratelimit.rules.yml"))
	require.Contains(t, string(config), "/run/secrets/"+p.Services["prometheus"].Secrets[0].Source)
	local := strings.ReplaceAll(string(config), "/run/secrets/", folder+"/")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "metrics_token"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ratelimit.rules.yml"), rules, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(local), 0o600))
	out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", filepath.Join(folder, "prometheus.yml")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "rules found")
}

func TestGrafanaHasTheBoardsAndThePrometheus(t *testing.T) {
	t.Parallel()
	p := project(t)
	var sources struct {
		Datasources []struct{ Name, Type, URL string }
	}
	var boards struct {
		Providers []struct {
			Name    string
			Options struct{ Path string }
		}
	}
	for file, into := range map[string]any{"grafana/datasources.yml": &sources, "grafana/dashboards.yml": &boards} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, into))
		require.Equal(t, "/etc/grafana/provisioning/"+strings.TrimSuffix(filepath.Base(file), ".yml"), filepath.Dir(target(t, p, "grafana", file)))
	}
	require.Len(t, sources.Datasources, 1)
	source, err := url.Parse(sources.Datasources[0].URL)
	require.NoError(t, err)
	require.Equal(t, "prometheus", sources.Datasources[0].Type)
	require.Equal(t, source.Port(), p.Services[source.Hostname()].Ports[0].Published)
	require.Len(t, boards.Providers, 1)
	require.Equal(t, boards.Providers[0].Options.Path, target(t, p, "grafana", "../boards"))
}

func TestTheImageOfTheDaemonIsBuiltFromPinnedOnes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	from := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, from, 2)
	require.Regexp(t, pinned, from[0][1])
	require.Equal(t, "scratch", from[1][1])
	require.Regexp(t, `(?m)^USER \d+:\d+$`, string(text))
	require.Contains(t, string(text), project(t).Services["gqlratelimitd"].Volumes[0].Target)
}
