import { ApolloLink, CombinedGraphQLErrors, ServerError } from "@apollo/client";
import { RetryLink } from "@apollo/client/link/retry";
import { map } from "rxjs";
import { retryDelay } from "./refusal.mjs";

// RetryLink sees errors only: a refusal that came as a result becomes one.
const refusalsAreErrors = new ApolloLink((operation, forward) =>
  forward(operation).pipe(
    map((result) => {
      if (retryDelay(1, result.errors ?? [], false) === undefined) return result;
      throw new CombinedGraphQLErrors(result);
    }),
  ),
);

// errorsOf returns the errors of a GraphQL answer, undefined if none came.
function errorsOf(error) {
  if (CombinedGraphQLErrors.is(error)) return error.errors;
  if (!ServerError.is(error)) return undefined;
  try {
    return JSON.parse(error.bodyText).errors;
  } catch {
    return undefined; // the page of a proxy
  }
}

function delay(attempt, operation, error) {
  const keyed = new Headers(operation.getContext().headers).has("Idempotency-Key");
  return retryDelay(attempt, errorsOf(error), keyed || operation.operationType === "query");
}

// Put it in front of HttpLink: link: ApolloLink.from([waitAsTold, new HttpLink({ uri })]).
export const waitAsTold = ApolloLink.from([
  new RetryLink({ attempts: (...failed) => delay(...failed) !== undefined, delay }),
  refusalsAreErrors,
]);
