package cost

// fragmentQueue is a binary heap of fragments, the one with the smallest order first: a set may spread
// as many fragments as the document has, in any order.
type fragmentQueue []*fragment

func (q *fragmentQueue) add(f *fragment) {
	heap := append(*q, f)
	at := len(heap) - 1
	for at > 0 {
		parent := (at - 1) / 2
		if heap[parent].order < f.order {
			break
		}
		heap[at], heap[parent] = heap[parent], heap[at]
		at = parent
	}
	*q = heap
}

// next takes the first fragment out of a queue that is not empty.
func (q *fragmentQueue) next() *fragment {
	heap := *q
	first, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	heap[last] = nil
	heap = heap[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			break
		}
		if child+1 < last && heap[child+1].order < heap[child].order {
			child++
		}
		if heap[at].order < heap[child].order {
			break
		}
		heap[at], heap[child] = heap[child], heap[at]
		at = child
	}
	*q = heap
	return first
}
