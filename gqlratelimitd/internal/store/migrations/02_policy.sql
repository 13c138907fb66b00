-- Every revision of the policy, byte for byte as it was published.
CREATE TABLE policy_revision (
	number    {integer} PRIMARY KEY CHECK (number BETWEEN 1 AND 9007199254740991),
	hash      {bytes} NOT NULL CHECK (length(hash) = 32),
	document  {bytes} NOT NULL,
	author    {text} NOT NULL,
	reason    {text} NOT NULL,
	-- Milliseconds since 1970, as they are signed.
	published {integer} NOT NULL,
	signature {bytes} NOT NULL
){strict};
