import assert from "node:assert/strict";
import { test } from "node:test";
import { ATTEMPTS, retryDelay } from "./refusal.mjs";

const refusal = (code, retryAfter) => [{ message: "no", extensions: { code, retryAfter } }];

test("a refusal that passes with time is waited for a little longer than it says", () => {
  for (const code of ["RATE_LIMITED", "RATE_LIMIT_UNAVAILABLE", "OVERLOADED", "IDEMPOTENCY_IN_FLIGHT"]) {
    const delay = retryDelay(1, [{ message: "other" }, ...refusal(code, 2)], false);
    assert.ok(delay > 2000 && delay <= 2500, `${code}: ${delay}`);
  }
});

test("a refusal without a time is waited for a second", () => {
  assert.ok(retryDelay(1, refusal("RATE_LIMITED"), false) > 1000);
});

test("nothing else that was answered is repeated", () => {
  assert.equal(retryDelay(1, refusal("COST_LIMIT_EXCEEDED"), true), undefined);
  assert.equal(retryDelay(1, [{ message: "no extensions" }], true), undefined);
  assert.equal(retryDelay(1, [], true), undefined);
});

test("nobody waits longer than half a minute", () => {
  assert.notEqual(retryDelay(1, refusal("RATE_LIMITED", 30), true), undefined);
  assert.equal(retryDelay(1, refusal("RATE_LIMITED", 31), true), undefined);
});

test("the last attempt is the last", () => {
  assert.notEqual(retryDelay(ATTEMPTS - 1, refusal("RATE_LIMITED", 1), true), undefined);
  assert.equal(retryDelay(ATTEMPTS, refusal("RATE_LIMITED", 1), true), undefined);
  assert.equal(retryDelay(ATTEMPTS, undefined, true), undefined);
});

test("a lost answer is asked for again only where that is safe, later each time", () => {
  assert.equal(retryDelay(1, undefined, false), undefined);
  assert.ok(retryDelay(1, undefined, true) < 500);
  assert.ok(retryDelay(2, undefined, true) > 500);
});
