"""The engine: a policy, a snapshot of a cluster and what is known already give a plan.

Pure: no input or output, no clock (``now`` is passed in), no Django. It decides; others ask, record and
evict.

The order of everything, always the same:

* nodes by name, the pods of a node by (namespace, name), and every sort keeps the order of equals; *
profiles as the policy lists them, in each the plugins of ``deschedule`` as they are listed; * a plugin
lists a node's pods, filters them (its own namespaces and labels, DefaultEvictor's filter, its pre-eviction
  filter) and works them off, then the next node; PodLifeTime lists all nodes first and takes the oldest
  first;
* what was evicted before counts when the next listing is filtered, not within one;
* a limit is tested before anybody is asked: total, node, namespace.

Where upstream's result depends on Go's sort or on the order of a map, ours is one that it can give.

What is where:

===================  ===================================================================================
``objects``          the Kubernetes objects as they are read, decoded from bytes
``selectors``        label selectors, as objects and as text
``quantities``       exact amounts; ``resources``: requests of a pod; ``room``: what nodes have left
``snapshot``         a cluster at one moment, indexed; ``nodeset``: sets of its nodes as bit masks
``overlay``          the evictions that a plan assumes, over a snapshot
``matching``         node selectors and affinity; ``taints``; ``antiaffinity``
``nodefit``          whether a pod fits elsewhere, and why not
``evictor``          DefaultEvictor; ``podfilter``: the filter that every plugin has
``plugins``          the table of plugins, their arguments, and how each decides; ``strategies`` lists those
                     that nominate
``policy``           reading and judging a policy ``groundwork``       what all plans of a cycle share;
``limits``: who has taken a place ``course``           one way through a plan, resumed where an answer
changes it; ``findings``: who was left alone ``plan``             ``plan(policy, snapshot, answers, now)``;
``results``: its words ``rounds``           ``decide``: plan, ask, plan again ``forecast``         what an
eviction would do, for people ``durations``        how long, in words ===================
===================================================================================
"""
