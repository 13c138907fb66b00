// Package policy brings policies to the instances of a server: it follows a feed of revisions, and serves the newest one
// that is valid.
//
// A [Revision] is a policy document as exact bytes under a number that only grows. A [Feed] gives the newest one: [File]
// is the feed of a policy file, package redisfeed has that of a Redis, and a feed of one's own has two methods and a
// contract that package policytest checks. [Follow] makes a [Follower], which is a tiers.Source and so a policy of
// ratelimit.Config; [OpenFile] makes one of a file.
//
// A follower subscribes to the hints of its feed, then reads, and then reads again at an interval: a hint that is
// lost costs an interval and no more. What is older than the policy that holds is never applied; going back is a new
// revision. A revision that does not compile, does not pass a check of its users, or lacks the signature of a key that is
// set, is refused and reported, and the next one is judged all the same. The last good revision is kept in memory and, where
// [Config.LastGood] says so, on disk: a server boots without its feed.
//
// A decision reads one pointer: following takes no lock and allocates nothing there.
package policy
