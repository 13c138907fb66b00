// Package preview says who would newly be refused if a policy were live, by what tenants have asked for of late.
//
// [Run] takes the records that instances write with their digests, and replays them twice with the engine that the limiter itself
// uses: under the policy of now and under the one that may follow. What only the latter refuses is newly refused. Both begin with full
// budgets, so that neither is at an advantage.
//
// What is recorded is a sample of the tenants: of each in it, everything. A report says how large the sample is, and between which
// bounds the shares of all tenants and users lie. It also says what records cannot answer: [previewreport.Report.NotJudged].
package preview
