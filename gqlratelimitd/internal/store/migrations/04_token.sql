-- Who may come in with a token. What a token is, nobody can read here.
CREATE TABLE token (
	id      {text} PRIMARY KEY,
	hash    {bytes} NOT NULL,
	subject {text} NOT NULL,
	owner   {text} NOT NULL,
	-- JSON.
	roles   {text} NOT NULL,
	tenants {text} NOT NULL,
	-- 1 for one that is exchanged for another.
	bootstrap {integer} NOT NULL,
	issued  {integer} NOT NULL,
	expires {integer} NOT NULL,
	-- To some minutes.
	used    {integer} NOT NULL,
	-- 0 while it holds.
	revoked {integer} NOT NULL
){strict};
