<?php
// Answers each request with the sum of what it allocates for it; for the recipe in docs/recipes.md.
$total = strlen(str_repeat('x', 1 << 20));
for ($i = 0; $i < 10000; $i++) {
    $total += strlen((string)$i);
}
echo "sum $total";
