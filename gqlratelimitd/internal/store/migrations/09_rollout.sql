-- The newest roll-out of a policy, in the words of who drives it.
CREATE TABLE rollout (
	id      {integer} PRIMARY KEY CHECK (id = 1),
	-- It counts the states of all roll-outs: who saves one says which one they have seen.
	version {integer} NOT NULL,
	-- JSON.
	state   {bytes} NOT NULL
){strict};
