package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// repetitions is how often a script repeats what is measured in one call, so that nothing else of the call shows.
const repetitions = 40_000

// wayToCount is what a script can do to count what it admits.
type wayToCount struct{ name, lines string }

// In the lines m is the minute of the hour, KEYS[1] to KEYS[4] are keys of the counts, and ARGV has the points and the requests, the two
// packed, and when the key expires.
const (
	bitfield = `local c=redis.call('BITFIELD',KEYS[1],'GET','u63','#0','OVERFLOW','SAT','INCRBY','i64','#'..(1+4*m),ARGV[1],'INCRBY','i64','#'..(3+4*m),ARGV[2])
if c[1]==0 then redis.call('SETRANGE',KEYS[1],'0','12345678') redis.call('PEXPIREAT',KEYS[1],ARGV[4]) end `
	perUnit = `if redis.call('HINCRBY',KEYS[2],m..'p',ARGV[1])==ARGV[1]+0 then redis.call('PEXPIREAT',KEYS[2],ARGV[4]) end
redis.call('HINCRBY',KEYS[2],m..'r',ARGV[2]) `
	packedNumbers = `local from=1000+16*m local was=redis.call('GETRANGE',KEYS[3],from,from+15) local x,y=0,0
if #was==16 then x,y=struct.unpack('>dd',was) end
if x+y==0 and redis.call('GETRANGE',KEYS[3],'0','0')=='' then redis.call('SET',KEYS[3],'12345678','PXAT',ARGV[4]) end
local a,b=struct.unpack('<dd',ARGV[3])
redis.call('SETRANGE',KEYS[3],from,struct.pack('>dd',x+a,y+b)) `
)

// packedPlaces is packedNumbers with the places as parts of a literal, because to make a number a string takes as long as half a command.
var packedPlaces = func() string {
	var places strings.Builder
	for minute := range 61 {
		fmt.Fprint(&places, 1000+16*minute)
	}
	lines := strings.Replace(packedNumbers, "local from=1000+16*m", "local places='"+places.String()+"' local from=places:sub(4*m+1,4*m+4)", 1)
	return strings.Replace(lines, "from+15", "places:sub(4*m+5,4*m+8)", 1)
}()

// madeWhole has numbers of seven bytes in a value that is made in its full size, so that a row that is there says that all is.
var madeWhole = func() string {
	var places strings.Builder
	for minute := range 61 {
		fmt.Fprint(&places, 100+14*minute)
	}
	return "local places='" + places.String() + `' local from=places:sub(3*m+1,3*m+3)
local was=redis.call('GETRANGE',KEYS[4],from,places:sub(3*m+4,3*m+6)) local x,y=0,0
if #was<14 then redis.call('SET',KEYS[4],'12345678'..string.rep('\0',932),'PXAT',ARGV[4]) else x,y=struct.unpack('>I7I7',was) end
local a,b=struct.unpack('<dd',ARGV[3])
redis.call('SETRANGE',KEYS[4],from,struct.pack('>I7I7',x+a,y+b)) `
}()

// waysToCount are the rows. The first is what the loop takes by itself.
var waysToCount = []wayToCount{
	{name: "nothing"},
	{"`BITFIELD` with two increments", bitfield},
	{"`HINCRBY` for each unit", perUnit},
	{"`GETRANGE` and `SETRANGE` of packed numbers", packedNumbers},
	{"the same, with places that are no numbers", packedPlaces},
	{"the same, with seven bytes a number, and made whole: **what count.lua does**", madeWhole},
}

// countedTotals is the feature of a take that counts points and requests.
const countedTotals = "4 limits, and usage in points and requests"

// counting compares ways in which a script can count points and requests. What a take comes to with them stands in the tables of Redis.
func counting(ctx context.Context, e effort) (*findings, error) {
	server, err := startRedis() //nolint:contextcheck // a start has a deadline of its own
	if err != nil {
		return nil, err
	}
	defer server.close()
	client := patientClient(server.Addr)
	defer func() { _ = client.Close() }()
	contenders := make([]contender, len(waysToCount))
	for i, w := range waysToCount {
		contenders[i] = contender{name: w.name, turn: func(ctx context.Context) (sample, error) { return server.repeat(ctx, client, w.lines) }}
	}
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, err
	}
	t := &table{
		title:  "Ways to count points and requests in a script",
		note:   "Processor time of Redis for each time, repeated inside one call: the least of all rounds, less that of an empty loop.",
		header: []string{"", "µs"},
	}
	for i := range outcomes[1:] {
		t.add(outcomes[1+i].name, micros(outcomes[1+i].least(serverProcessor)-outcomes[0].least(serverProcessor)))
	}
	all := &findings{tables: []*table{t}}
	for _, n := range callers {
		takes, aims, err := server.countedTakes(ctx, e, client, n)
		if err != nil {
			return nil, err
		}
		all.tables, all.aims = append(all.tables, takes), append(all.aims, aims...)
	}
	return all, nil
}

// countedTakes compares takes over four limits that are counted with one that is not.
func (s *redisServer) countedTakes(ctx context.Context, e effort, client *goredis.Client, atOnce int) (*table, []aim, error) {
	all, err := features()
	if err != nil {
		return nil, nil, err
	}
	var contenders []contender
	for i := range all {
		if f := &all[i]; f.name == "4 limits" || f.usage != nil {
			d, err := f.inRedis(client, fmt.Sprint("counted", i))
			if err != nil {
				return nil, nil, err
			}
			contenders = append(contenders, s.calling(e, d.name, atOnce, false, d.decide))
		}
	}
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, nil, err
	}
	t := &table{
		title:  fmt.Sprintf("Takes over four limits that are counted, callers at once: %d", atOnce),
		note:   "The least of all rounds: keys are made once an hour, and that is no part of it.",
		header: []string{"", "server µs", "× not counted", "script µs", "× not counted", "commands"},
	}
	none := &outcomes[0]
	var aims []aim
	for i := range outcomes {
		o := &outcomes[i]
		if o.name == "**ratelimit, "+countedTotals+"**" {
			aims = append(aims, atMost(fmt.Sprintf("processor time of Redis for a take that counts points and requests ÷ one that does not, callers at once %d", atOnce), 1.10,
				o.least(serverProcessor)/none.least(serverProcessor), times))
		}
		t.add(o.name, micros(o.least(serverProcessor)), digits(o.least(serverProcessor)/none.least(serverProcessor)),
			micros(o.least(script)), digits(o.least(script)/none.least(script)), digits(o.least(commands)))
	}
	return t, aims, nil
}

// repeat runs the lines many times in one script.
func (s *redisServer) repeat(ctx context.Context, client *goredis.Client, lines string) (sample, error) {
	before, err := s.statistics(ctx)
	if err != nil {
		return sample{}, err
	}
	text := fmt.Sprintf("local m=20 for i=1,%d do %s end", repetitions, lines)
	keys := []string{"{count}1", "{count}2", "{count}3", "{count}4"}
	packed := "\x00\x00\x00\x00\x00\x00\x1c\x40\x00\x00\x00\x00\x00\x00\xf0\x3f"
	if err := client.Eval(ctx, text, keys, 7, 1, packed, 1<<42).Err(); err != nil && !errors.Is(err, goredis.Nil) {
		return sample{}, err
	}
	after, err := s.statistics(ctx)
	var result sample
	result[serverProcessor] = float64(after.processor-before.processor) / repetitions
	return result, err
}

// least returns the least of a metric over the rounds.
func (o *outcome) least(m metric) float64 {
	least := o.samples[0][m]
	for i := range o.samples {
		least = min(least, o.samples[i][m])
	}
	return least
}
