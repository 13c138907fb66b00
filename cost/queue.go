package cost

// queue is a binary heap: next takes out an element that no other stands before.
type queue[T interface{ Before(other T) bool }] []T

func (q *queue[T]) add(x T) {
	heap := append(*q, x)
	for at := len(heap) - 1; at > 0; {
		parent := (at - 1) / 2
		if !heap[at].Before(heap[parent]) {
			break
		}
		heap[at], heap[parent] = heap[parent], heap[at]
		at = parent
	}
	*q = heap
}

// next takes the first element out of a queue that is not empty.
func (q *queue[T]) next() T {
	heap := *q
	first, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	clear(heap[last:])
	heap = heap[:last]
	for at, child := 0, 1; child < last; at, child = child, 2*child+1 {
		if child+1 < last && heap[child+1].Before(heap[child]) {
			child++
		}
		if !heap[child].Before(heap[at]) {
			break
		}
		heap[at], heap[child] = heap[child], heap[at]
	}
	*q = heap
	return first
}
