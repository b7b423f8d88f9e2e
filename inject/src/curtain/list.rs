//! A list in a fixed place: a look through it takes as long as it has items, and not as long as it has room.

/// At most `ROOM` items, in no order that lasts.
pub struct List<T, const ROOM: usize> {
    items: [T; ROOM],
    count: usize,
}

impl<T: Copy, const ROOM: usize> List<T, ROOM> {
    /// An empty one; `unused` fills the room.
    pub const fn new(unused: T) -> Self {
        Self { items: [unused; ROOM], count: 0 }
    }

    pub fn clear(&mut self) {
        self.count = 0;
    }

    pub fn is_full(&self) -> bool {
        self.count == ROOM
    }

    pub fn items(&self) -> &[T] {
        self.items.get(..self.count).unwrap_or_default()
    }

    pub fn items_mut(&mut self) -> &mut [T] {
        self.items.get_mut(..self.count).unwrap_or_default()
    }

    /// Adds one, and tells its place; `None` when there is no room.
    pub fn push(&mut self, item: T) -> Option<usize> {
        let place = self.count;
        *self.items.get_mut(place)? = item;
        self.count += 1;
        Some(place)
    }

    /// Takes out the first item that is `wanted`; the last one takes its place.
    pub fn take(&mut self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let items = self.items_mut();
        let place = items.iter().position(wanted)?;
        let (item, last) = (*items.get(place)?, *items.last()?);
        *items.get_mut(place)? = last;
        self.count -= 1;
        Some(item)
    }
}
