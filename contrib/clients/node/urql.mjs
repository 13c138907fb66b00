import { composeExchanges, makeOperation, mapExchange } from "@urql/core";
import { retryExchange } from "@urql/exchange-retry";
import { ATTEMPTS, retryDelay } from "./refusal.mjs";

function optionsOf({ context: { fetchOptions } }) {
  const options = (typeof fetchOptions === "function" ? fetchOptions() : fetchOptions) ?? {};
  return { ...options, headers: new Headers(options.headers) };
}

// urql also accepts streams of events, and yields the one result of such a stream twice: retryExchange would
// retry it twice, and so run a mutation several times. An operation with @defer needs an Accept of its own.
function acceptNoStream(operation) {
  const fetchOptions = optionsOf(operation);
  const streams = operation.kind === "subscription" || fetchOptions.headers.has("Accept");
  if (operation.kind === "teardown" || streams) return operation;
  fetchOptions.headers.set("Accept", "application/graphql-response+json, application/json");
  return makeOperation(operation.kind, operation, { ...operation.context, fetchOptions });
}

function delay(error, operation) {
  const attempt = (operation.context.retry?.count ?? 0) + 1;
  const repeatable = operation.kind === "query" || optionsOf(operation).headers.has("Idempotency-Key");
  return retryDelay(attempt, error.networkError ? undefined : error.graphQLErrors, repeatable);
}

// Put it in front of fetchExchange.
export const waitAsTold = composeExchanges([
  mapExchange({ onOperation: acceptNoStream }),
  retryExchange({
    maxNumberAttempts: ATTEMPTS,
    maxDelayMs: 120_000,
    retryIf: (error, operation) => delay(error, operation) !== undefined,
    // There is no option for the delay. retryExchange keeps it here, and multiplies it by 1.5 to 2.5.
    retryWith: (error, operation) =>
      makeOperation(operation.kind, operation, {
        ...operation.context,
        retry: { count: operation.context.retry?.count ?? 0, delay: delay(error, operation) / 1.5 },
      }),
  }),
]);
