-- What waits, or has waited, for a second person.
CREATE TABLE proposal (
	id              {integer} PRIMARY KEY,
	action          {text} NOT NULL,
	hash            {bytes} NOT NULL CHECK (length(hash) = 32),
	-- NULL once nobody can approve or publish it any more.
	document        {bytes},
	-- The newest revision that it is based on.
	expected        {integer} NOT NULL,
	-- JSON: what was known of how far it reaches.
	report          {bytes} NOT NULL,
	proposer        {text} NOT NULL,
	reason          {text} NOT NULL,
	proposed        {integer} NOT NULL,
	expires         {integer} NOT NULL,
	-- Empty where nobody has approved it.
	approver        {text} NOT NULL DEFAULT '',
	approval_reason {text} NOT NULL DEFAULT '',
	approved        {integer} NOT NULL DEFAULT 0,
	-- Published, withdrawn or rejected; empty while it is none of these.
	ending          {text} NOT NULL DEFAULT '',
	ended           {integer} NOT NULL DEFAULT 0,
	-- The revision that it became.
	revision        {integer} NOT NULL DEFAULT 0
){strict};
CREATE INDEX proposal_change ON proposal (expected, hash);
