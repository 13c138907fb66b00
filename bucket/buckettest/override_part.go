package buckettest

import "github.com/gqlgen-ratelimit/ratelimit/bucket"

func checkPartOverrides(s *scene) {
	limits := s.compile(perMinute(10))
	login := bucket.Owner{Level: bucket.Operation, Name: "Mutation.login"}
	part := func(name string) bucket.Bucket {
		owner := login
		owner.Part = name
		return bucket.Bucket{Owner: owner, Limits: limits}
	}
	whole, eve, bob := bucket.Bucket{Owner: login, Limits: limits}, part("eve"), part("bob")
	all := []bucket.Bucket{whole, eve, bob}
	s.override(bucket.Override{Owner: login, Limit: "minute", Capacity: 20})
	s.override(bucket.Override{Owner: eve.Owner, Limit: "minute", Capacity: 3})
	s.override(bucket.Override{Owner: eve.Owner, Limit: "hour", Capacity: 3})
	result := s.take(all, points(2))
	s.verdict(result, bucket.Admitted)
	s.equal(s.remaining(all...), []int64{18, 1, 18}, "remaining")
	unused := result.UnusedOverrides()
	s.equal(len(unused) == 1 && unused[0].Owner == eve.Owner && unused[0].Limit == "hour", true, "one record changes nothing")
	result = s.take([]bucket.Bucket{bob}, points(0))
	s.equal(len(result.UnusedOverrides()), 0, "records that change nothing")

	s.override(bucket.Override{Owner: eve.Owner, Blocked: true})
	s.blocked(s.take([]bucket.Bucket{eve}, points(1)), eve.Owner)
	s.verdict(s.take([]bucket.Bucket{bob}, points(1)), bucket.Admitted)
	s.override(bucket.Override{Owner: login, Blocked: true})
	s.blocked(s.take([]bucket.Bucket{bob}, points(1)), login)
}
