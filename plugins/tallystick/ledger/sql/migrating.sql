-- name: paths_lacking
-- The functions of this schema that look names up where their caller likes, each with the statement
-- that ends it. A caller's temporary table would otherwise stand for a table that a guard asks.
SELECT f.oid::regprocedure::text AS named,
       format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f.oid::regprocedure,
              current_schema()) AS query
  FROM pg_proc f
 WHERE f.pronamespace = quote_ident(current_schema())::regnamespace
   AND NOT coalesce(f.proconfig::text LIKE '%search_path=%', false)
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e')
 ORDER BY f.oid;

-- name: rights_of_everybody
-- Rights that everybody has and no role needs, each with the statement that takes it, and if this role
-- may. An operator in the schema would come before PostgreSQL's own of the same name.
SELECT r.given, r.query, pg_has_role(r.owner, 'USAGE') AS may_take
  FROM (SELECT format('CREATE on schema %s', s.nspname) AS given,
               format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', s.nspname) AS query,
               s.nspowner AS owner,
               has_schema_privilege('public', s.oid, 'CREATE') AS has_it
          FROM pg_namespace s WHERE s.nspname = current_schema()
         UNION ALL
        SELECT format('TEMPORARY on database %s', d.datname),
               format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', d.datname), d.datdba,
               has_database_privilege('public', d.oid, 'TEMPORARY')
          FROM pg_database d WHERE d.datname = current_database()) r
 WHERE r.has_it
 ORDER BY r.given;
