package cost

import "fmt"

// Reading an object twice, to find its type or to price it as several types, is allowed for as many
// bytes as there are, extraFactor times, and extraBytes. Without a bound it could be exponential in
// the depth of a response.
const (
	extraFactor = 16
	extraBytes  = 4096
)

// responseVisit prices the data of one payload while scanning it.
type responseVisit struct {
	scanner
	t *Tally
	// left is how many more bytes may be read twice.
	left int
	// classes is a stack of what the objects that are being read may be.
	classes []typeClass
	reason  string
	// foreign says that the reason is a response name that the type does not select, or a type that is not
	// possible there.
	foreign bool
}

// fail says what is wrong where the scanner is. It returns false.
func (v *responseVisit) fail(reason string) bool {
	if v.reason == "" {
		v.reason = reason
	}
	return false
}

func (v *responseVisit) malformed() error {
	if v.reason == "" {
		v.reason = "this is no JSON"
	}
	return &ResponseError{Offset: v.at, Reason: v.reason}
}

// null reads a null if it is the next value.
func (v *responseVisit) null() bool { return v.peek() == 'n' && v.word("null") }

// object prices an object of one of the classes. told is the name of its type if that is known, and agree
// says that calls of one response name cost the same in all classes that have it. Of a part of an object that
// was counted before only the calls count.
func (v *responseVisit) object(classes []typeClass, agree bool, path uint64, told string, part bool) (pair, bool) {
	if v.peek() != '{' {
		return pair{}, v.fail("this is no object")
	}
	if len(classes) > 1 {
		if told == "" {
			told = v.t.observed[path]
		}
		below := len(v.classes)
		defer func() { v.classes = v.classes[:below] }()
		if told == "" && agree {
			return v.together(classes, path)
		}
		var ok bool
		if classes, ok = v.narrow(classes, told); !ok {
			return pair{}, false
		}
	}
	if len(classes) == 1 {
		price, ok := v.calls(classes[0].set, path, part)
		if !part {
			price.typ += classes[0].weight
		}
		return price, ok
	}
	return v.dearest(classes, path, part)
}

// dearest prices an object as each of the classes that it may be of.
func (v *responseVisit) dearest(classes []typeClass, path uint64, part bool) (pair, bool) {
	var highest pair
	start, end, found := v.scanner, v.scanner, 0
	for i := range classes {
		v.scanner = start
		price, ok := v.calls(classes[i].set, path, part)
		if i > 0 && !v.again(v.at-start.at) {
			return pair{}, false
		}
		if !ok {
			if v.foreign && (found > 0 || i < len(classes)-1) {
				// The object is not of these types, although what is selected on it is.
				v.foreign, v.reason = false, ""
				continue
			}
			return pair{}, false
		}
		if !part {
			price.typ += classes[i].weight
		}
		if found > 0 {
			v.t.guessed = true
			price = price.max(highest)
		}
		highest, end = price, v.scanner
		found++
	}
	v.scanner = end
	return highest, true
}

// again counts bytes that are read a second time.
func (v *responseVisit) again(n int) bool {
	v.left -= n
	return v.left >= 0 || v.fail("too many objects do not tell their type")
}

// narrow returns the classes that an object may be of. Who knows the type need not read ahead.
func (v *responseVisit) narrow(classes []typeClass, told string) ([]typeClass, bool) {
	if told != "" {
		if only := classOf(classes, []byte(told)); only != nil {
			return only, true
		}
	}
	here := v.scanner
	left, ok := v.readAhead(classes)
	read := v.at - here.at
	if !ok {
		return nil, false
	}
	v.scanner = here
	return left, v.again(read)
}

// classOf returns the class of a type alone, nil if there is none.
func classOf(classes []typeClass, name []byte) []typeClass {
	for i := range classes {
		if classes[i].types[string(name)] {
			return classes[i : i+1]
		}
	}
	return nil
}

// readAhead reads the names of an object until they leave one class.
func (v *responseVisit) readAhead(classes []typeClass) ([]typeClass, bool) {
	at := len(v.classes)
	v.classes = append(v.classes, classes...)
	left := v.classes[at:]
	ok := v.each(func(n int32, key []byte) bool {
		if !v.again(len(left)) {
			return false
		}
		if _, told := v.tell(&left, n, key); !told && (len(left) == 0 || !v.skip()) {
			return false
		}
		return len(left) > 1
	})
	return left, len(left) == 1 || ok
}

// each reads the names of an object, and lets read the value of each.
func (v *responseVisit) each(read func(n int32, key []byte) bool) bool {
	if !v.enter('{') {
		return false
	}
	for n := int32(0); ; n++ {
		more, ok := v.more(n == 0, '}')
		if !more {
			return ok
		}
		if key, ok := v.key(); !ok || !read(n, key) {
			return false
		}
	}
}

// together prices an object of one of several classes that agree, reading it once: whichever of them is
// left in the end, its calls cost what they cost in the others.
func (v *responseVisit) together(classes []typeClass, path uint64) (total pair, ok bool) {
	at := len(v.classes)
	v.classes = append(v.classes, classes...)
	left := v.classes[at:]
	ok = v.each(func(n int32, key []byte) bool {
		if len(left) > 1 && !v.again(len(left)) {
			return false
		}
		call, told := v.tell(&left, n, key)
		if told {
			total.field += v.t.r.alias(&v.t.r.calls[call])
		}
		if told || len(left) == 0 {
			return told
		}
		price, ok := v.call(call, nil, path)
		total = total.plus(price)
		return ok
	})
	if !ok {
		return pair{}, false
	}
	v.t.guessed = v.t.guessed || len(left) > 1
	weight := left[0].weight
	for _, class := range left[1:] {
		weight = max(weight, class.weight)
	}
	total.typ += weight
	return total, true
}

// tell keeps the classes whose objects may have the response name as the n-th, and returns its call. If the
// name is that of __typename, it reads which type is told; no class is left where something is wrong.
func (v *responseVisit) tell(classes *[]typeClass, n int32, key []byte) (call int32, told bool) {
	left, call := v.t.with(*classes, n, key)
	*classes = left
	if len(left) == 0 {
		return 0, v.unknown(key)
	}
	if v.t.r.calls[call].info != typenameField || v.peek() != '"' {
		return call, false
	}
	name, ok := v.text()
	if *classes = classOf(left, name); ok && *classes == nil {
		// Another type of an object around this one may select it.
		v.foreign = true
		return 0, v.fail(fmt.Sprintf("%.100q is no possible type here", name))
	}
	return call, ok
}

// with keeps the classes, in place, whose objects may have the response name as the n-th, and returns its
// call in one of them: that of __typename if there is one.
func (t *Tally) with(classes []typeClass, n int32, key []byte) (left []typeClass, call int32) {
	left = classes[:0]
	for _, class := range classes {
		if at, _, ok := t.find(class.set, t.expected(class.set, n), key); ok {
			if len(left) == 0 || t.r.calls[at].info == typenameField {
				call = at
			}
			left = append(left, class)
		}
	}
	return left, call
}

// calls prices the calls in an object, or in a part of it.
func (v *responseVisit) calls(set int32, path uint64, part bool) (total pair, ok bool) {
	if !v.enter('{') {
		return pair{}, false
	}
	expected := v.t.expected(set, 0)
	for first := true; ; first = false {
		more, ok := v.more(first, '}')
		if !more {
			return total, ok
		}
		key, ok := v.key()
		if !ok {
			return pair{}, false
		}
		at, others, ok := v.t.find(set, expected, key)
		if !ok {
			return pair{}, v.unknown(key)
		}
		expected = at + 1
		before := part && v.t.awaited[v.t.step(path, v.t.r.calls[at].key, 0)]
		price, ok := v.call(at, others, path)
		if !ok {
			return pair{}, false
		}
		if before {
			own, _ := v.t.own(at)
			price.field -= v.t.withOthers(own, others)
		}
		total = total.plus(price)
	}
}

func (v *responseVisit) unknown(key []byte) bool {
	v.foreign = true
	return v.fail(fmt.Sprintf("%.100q is no response name here", key))
}

// call prices a call with its value. Where selections are summed, others are of the same call.
func (v *responseVisit) call(at int32, others []int32, path uint64) (pair, bool) {
	c := &v.t.r.calls[at]
	own, whole := v.t.own(at)
	if len(others) > 0 {
		own = v.t.withOthers(own, others)
	}
	price := pair{field: own}
	if c.info == typenameField {
		return price, v.skip()
	}
	switch {
	case v.null():
		v.t.await(v.t.step(path, c.key, 0))
		return price, true
	case c.info.kind == constant:
		return price, v.skip()
	case c.info.introspects:
		price = v.t.r.call(c, parentSizes{})
		for _, other := range others {
			price = price.plus(v.t.r.call(&v.t.r.calls[other], parentSizes{}))
		}
		return price, v.skip()
	case c.value < 0 && c.info.leaf == 0:
		return price, v.skip()
	}
	var names []string
	if c.info.kind == entities {
		v.t.r.m.represent(&v.t.r.representations[c.special], func(_ int, name string) { names = append(names, name) })
	}
	var below *toldValue
	if c.value >= 0 {
		below = &v.t.o.told[c.value]
	}
	if len(others) > 0 {
		below = v.t.merged(c, others)
	}
	value, ok := v.elements(c, below, c.info.depth, v.t.step(path, c.key, 0), names)
	price.typ = max(0, value.typ)
	if !whole {
		price.field += value.field
	}
	return price, ok
}

// elements prices the elements of lists that are nested as deeply. names are the types of the elements
// as far as they are known.
func (v *responseVisit) elements(c *call, below *toldValue, depth int, path uint64, names []string) (pair, bool) {
	if v.peek() == 'n' {
		return pair{}, v.word("null")
	}
	if depth == 0 {
		if c.value < 0 {
			return pair{typ: c.info.leaf}, v.skip()
		}
		told := ""
		if len(names) > 0 {
			told = names[0]
		}
		return v.object(below.classes, below.agree, path, told, false)
	}
	if v.peek() != '[' {
		return pair{}, v.fail("this is no list")
	}
	if !v.enter('[') {
		return pair{}, false
	}
	var total pair
	for i := 0; ; i++ {
		more, ok := v.more(i == 0, ']')
		if !more {
			return total, ok
		}
		var rest []string
		if i < len(names) {
			rest = names[i : i+1]
		}
		price, ok := v.elements(c, below, depth-1, v.t.step(path, "", i+1), rest)
		if !ok {
			return pair{}, false
		}
		total = total.plus(price)
	}
}
