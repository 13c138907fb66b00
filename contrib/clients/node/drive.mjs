// Sends one operation with one client and prints, as JSON, what the application sees. The argument says which,
// as JSON: client, setup (plain, own, advised), url, document, mutation, headers.
import { ApolloClient, ApolloLink, CombinedGraphQLErrors, HttpLink, InMemoryCache, ServerError, gql } from "@apollo/client";
import { RetryLink } from "@apollo/client/link/retry";
import { Client, fetchExchange } from "@urql/core";
import { retryExchange } from "@urql/exchange-retry";
import { waitAsTold as apolloWaits } from "./apollo.mjs";
import { waitAsTold as urqlWaits } from "./urql.mjs";

const call = JSON.parse(process.argv[2]);

async function apollo() {
  const http = new HttpLink({ uri: call.url });
  const retries = { plain: [], own: [new RetryLink()], advised: [apolloWaits] }[call.setup];
  const client = new ApolloClient({ link: ApolloLink.from([...retries, http]), cache: new InMemoryCache() });
  const document = gql(call.document);
  const context = { headers: call.headers };
  try {
    await (call.mutation ? client.mutate({ mutation: document, context }) : client.query({ query: document, context }));
    return { passed: true };
  } catch (error) {
    if (CombinedGraphQLErrors.is(error)) return { sees: "CombinedGraphQLErrors", code: error.errors[0].extensions?.code };
    if (ServerError.is(error)) return { sees: `ServerError ${error.statusCode}` };
    return { sees: error.name };
  }
}

async function urql() {
  const retries = { plain: [], own: [retryExchange()], advised: [urqlWaits] }[call.setup];
  const client = new Client({ url: call.url, exchanges: [...retries, fetchExchange] });
  const context = { fetchOptions: { headers: call.headers } };
  const { error } = await (call.mutation
    ? client.mutation(call.document, {}, context)
    : client.query(call.document, {}, context)
  ).toPromise();
  if (!error) return { passed: true };
  if (error.networkError) return { sees: "CombinedError.networkError" };
  return { sees: "CombinedError.graphQLErrors", code: error.graphQLErrors[0].extensions?.code };
}

console.log(JSON.stringify(await { apollo, urql }[call.client]()));
