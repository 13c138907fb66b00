package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/throttletest"
)

// machine has the files of Linux.
func machine(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// stat is /proc/self/stat of a process that has used some hundredths of a second. Its name has a bracket and blanks in it.
func stat(user, system int) string {
	return fmt.Sprintf("17 (a ) b) S 1 17 17 0 -1 4194304 100 0 0 0 %d %d 0 0 20 0 8 0 100 1000 200", user, system)
}

func TestProcessorTimeIsAShareOfWhatTheControlGroupGives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"without a group":           {nil, 0.25},
		"with a quota":              {map[string]string{"proc/self/cgroup": "0::/pod/app\n", "sys/fs/cgroup/pod/app/cpu.max": "200000 100000\n"}, 0.5},
		"with one of an ancestor":   {map[string]string{"proc/self/cgroup": "1:cpu:/x\n0::/pod/app\n", "sys/fs/cgroup/pod/app/cpu.max": "max 100000", "sys/fs/cgroup/pod/cpu.max": "100000 100000"}, 1},
		"with a quota that is none": {map[string]string{"proc/self/cgroup": "0::/pod", "sys/fs/cgroup/pod/cpu.max": "nothing"}, 0.25},
		"with more than there is":   {map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "900000 100000"}, 0.25},
		"with a group outside":      {map[string]string{"proc/self/cgroup": "0::/../../etc"}, 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock, root := throttletest.NewClock(), machine(c.files)
			root["proc/self/stat"] = &fstest.MapFile{Data: []byte(stat(100, 50))}
			read := throttle.ReadProcessor(root, clock.Now, 4)
			_, known := read()
			require.False(t, known, "the first reading says nothing")
			clock.Add(2 * time.Second)
			root["proc/self/stat"] = &fstest.MapFile{Data: []byte(stat(250, 100))}
			value, known := read()
			require.True(t, known)
			require.InDelta(t, c.want, value, 1e-9)
		})
	}
}

func TestProcessorTimeIsThatOfTheRuntimeWhereThereIsNoProc(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "no bracket", "1 (a) S 1", "1 (a) S 1 1 1 1 1 1 1 1 1 1 x y z"} {
		root := machine(map[string]string{"proc/self/stat": text})
		clock := throttletest.NewClock()
		read := throttle.ReadProcessor(root, clock.Now, 4)
		read()
		runtime.GC()
		clock.Add(time.Second)
		value, known := read()
		require.True(t, known)
		require.GreaterOrEqual(t, value, 0.0)
	}
}

func TestMemoryIsAShareOfTheTightestLimitAndGarbageDoesNotCount(t *testing.T) {
	t.Parallel()
	_, known := throttle.ReadMemory(machine(nil), 0)()
	require.False(t, known, "without a limit there is no share")
	group := machine(map[string]string{
		"proc/self/cgroup": "0::/pod/app", "sys/fs/cgroup/pod/app/memory.max": "max", "sys/fs/cgroup/pod/memory.max": "1073741824",
	})
	byGroup, known := throttle.ReadMemory(group, 0)()
	require.True(t, known)
	require.Greater(t, byGroup, 0.0)
	require.Less(t, byGroup, 0.5)
	byRuntime, known := throttle.ReadMemory(group, 1<<29)()
	require.True(t, known)
	require.InDelta(t, 2*byGroup, byRuntime, byGroup)
	// 2^18 pages are resident that the runtime knows nothing of.
	group["proc/self/statm"] = &fstest.MapFile{Data: []byte("400000 262144 10")}
	pages, known := throttle.ReadMemory(group, 0)()
	require.True(t, known)
	require.InDelta(t, float64(os.Getpagesize())/4096, pages, 0.5)
}

func TestTheRealFilesOfThisMachineAreRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("there are no such files here")
		return
	}
	read := throttle.ReadProcessor(os.DirFS("/"), time.Now, 1)
	read()
	value := 0.0
	// On a busy machine it may take a while until this process has had a hundredth of a second.
	for began := time.Now(); value == 0 && time.Since(began) < time.Minute; {
		for spin := time.Now(); time.Since(spin) < 20*time.Millisecond; {
			runtime.Gosched()
		}
		now, known := read()
		require.True(t, known)
		value = now
	}
	require.Positive(t, value)
}

func TestTheP99IsWithinAnEighthOfTheRealOne(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var l throttle.Latency
	all := make([]time.Duration, 10_000)
	for i := range all {
		all[i] = time.Duration(random.ExpFloat64() * float64(20*time.Millisecond))
		l.Observe(all[i])
	}
	slices.Sort(all)
	real99 := all[9900].Seconds()
	require.InEpsilon(t, real99, l.P99().Seconds(), 0.13)
	require.Zero(t, l.P99(), "it is that of one second")
	// Few operations are looked at for longer.
	for range 10 {
		l.Observe(time.Second)
	}
	for range 5 {
		require.InEpsilon(t, 1, l.P99().Seconds(), 0.13)
	}
	require.Zero(t, l.P99())
	for _, odd := range []time.Duration{-time.Hour, 0, 1, 1000 * time.Hour} {
		l.Observe(odd)
	}
	require.Positive(t, l.P99())
}
