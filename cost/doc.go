// Package cost prices GraphQL operations before they run.
//
// The price has two parts, after the IBM GraphQL cost directives: the type cost counts the objects
// that an operation can return, the field cost the resolver calls that it can cause. An [Estimator]
// knows the weights and list sizes of one schema. [Estimator.Plan] compiles an operation, folding
// everything that does not depend on variables; [Plan.Evaluate] reads the variables and returns the
// [Cost]; [Cost.Points] is the price as an integer.
//
// # What is counted
//
// Selections are collected as execution collects them: merged by response name for each possible
// object type, fragments followed, @skip and @include decided by the variables. An abstract type
// costs the maximum over its possible types, component by component. For a call of field f on an
// object type, with n elements in its list (1 if it is none) and the merged selection S of its value:
//
//	child = component-wise max over possible object types O of cost(S on O)
//	field = max(0, weight(f) + weights of arguments, input fields and query directives) + n × child.field
//	type  = max(0, n × (weight(return type) + child.type))
//
// A field that is called under several response names on one object pays [Config.AliasWeight] for all of them but one, in field
// cost.
//
// The operation costs the sum of its root calls; the weight of the root type itself is added to the
// type cost. What has no weight counts 1 if its type is an object, interface, union or input object,
// and 0 if it is a scalar or an enum. The weight and list size of a field selected through an
// interface are those of the field of each object type. Of the directives of several merged
// selections of one field the most expensive set counts.
//
// An argument or input field may weigh more or less with certain values, by @costWhen or [Config.ValueWeights]. One that a
// valid request has to give is priced as given where it is missing, with the dearest of its weights.
//
// The size of a list is what the sizedFields of the parent's @listSize say, else the largest slicing
// argument that is given, clamped at 0, else assumedSize, else the default size. A slicing argument
// may be a path into input objects, or a list, which counts with its length. In a list of lists the
// directive sizes the outermost one; each further one has the default size.
//
// A slicing argument is a number of any scalar, also as text, and one with a fraction is rounded up. A value that is no
// number makes the price infinite, because a resolver may make any size of it. Null is as good as absent. In the place of a
// default it is as dear as the default at least, because a resolver that is given null may take it.
//
// # Functions
//
// A field may have a function in the place of a weight ([Config.Complexity]), as servers built with
// gqlgen do. It also replaces the multiplication with n in the field cost:
//
//	field = function(child.field, arguments) + weights of arguments, input fields and query directives
//
// The type cost stays what it is. Only if nothing sizes the list it is what the function adds for the
// objects: function(child.field + weight(return type) + child.type) - function(child.field).
//
// # Meta-fields
//
// Meta-fields have prices of their own, whatever the operation is called. __typename is free. __schema
// and __type cost 10 in field cost each time they are called. What is selected below, merged as everything is, costs as
// much of 30 points as it reads of the schema, whose lists count with their average length: reading a whole schema, as
// tools do, costs about 40. These are prices, not bounds. _service costs 1, whatever is
// selected below. _entities costs what its representations cost, each by its own __typename; one that is
// missing or unknown costs as much as the most expensive entity.
//
// # Shape
//
// [Config.Shape] bounds the shape of an operation beside its cost: depth, aliases, root fields,
// directives and list nodes. All but that of aliases are off in the zero value.
//
// # Bounds
//
// The price, but for introspection and functions, is an upper bound for every response that respects the
// declared sizes; with functions it is as good as they are. It is never negative and never NaN, and one that overflows is infinite, which [Cost.Points]
// turns into [MaxPoints]: too expensive, never cheap. Compiling does a bounded amount of work: past
// [Config.WorkLimit] selections are summed instead of merged, which is linear and costs at least as
// much. Evaluating reads a variable once however often it is used, and no more values in variables than
// [Config.MaxValues]: past that the price is infinite.
package cost
