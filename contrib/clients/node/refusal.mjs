// What to do about a failed operation, for any GraphQL client. Times are in milliseconds.

export const ATTEMPTS = 5;
// Who is told to wait longer gets the refusal at once, and can tell the user.
const LONGEST_WAIT = 30_000;

// The codes of refusals after which the same request can pass. Nothing has run.
const TEMPORARY = new Set(["RATE_LIMITED", "RATE_LIMIT_UNAVAILABLE", "OVERLOADED", "IDEMPOTENCY_IN_FLIGHT"]);

// retryDelay returns how long to wait before the operation is sent again, or undefined if it is not to be.
// attempt counts from 1. errors are those of a GraphQL answer, undefined if none came. repeatable says whether
// the operation may run twice: queries, and mutations with an Idempotency-Key.
export function retryDelay(attempt, errors, repeatable) {
  if (attempt >= ATTEMPTS) return undefined;
  if (errors === undefined) {
    // The answer was lost: it may have run.
    return repeatable ? jittered(250 * 2 ** (attempt - 1)) : undefined;
  }
  const refusal = errors.find((error) => TEMPORARY.has(error.extensions?.code));
  if (!refusal) return undefined;
  const told = (refusal.extensions.retryAfter ?? 1) * 1000;
  return told <= LONGEST_WAIT ? jittered(told) : undefined;
}

// Never earlier than told, and not all clients at one moment.
function jittered(delay) {
  return delay * (1.05 + 0.2 * Math.random());
}
